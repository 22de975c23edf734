/** `check`: what a configuration file means, and all that is wrong or doubtful in it. */
import type { Config, RouteConfig } from "../config/config.ts";
import { loadConfig } from "../config/load.ts";
import type { LoadOptions } from "../config/load.ts";
import { formatProblem } from "../config/problem.ts";
import type { KeyRule } from "../hash/keyRule.ts";
import type { RelabelRuleList } from "../relabel/options.ts";
import { taskBalance } from "../route/balance.ts";
import type { TaskOptions, TenantOptions } from "../route/options.ts";

/** Under jump hash, fewer tasks than this for each upstream spread too unevenly: some upstreams get half as much again. */
const ENOUGH_TASKS_A_SLOT = 40;

/** Placing more tasks one by one would take seconds; so many spread evenly anyway. */
const MAX_TASKS_COUNTED = 1_000_000;

const MAX_NAMES_SHOWN = 10;

/**
 * Prints every problem of a file and, when it is valid, what was understood.
 *
 * @param print takes one line at a time
 * @returns the exit code: 1 when the file has an error, else 0
 */
export function check(file: string, options: LoadOptions, print: (line: string) => void): number {
  const { origin, config, problems } = loadConfig(file, options);
  for (const problem of problems) print(formatProblem(problem));
  if (config === null) {
    const errors = problems.filter((problem) => problem.severity === "error").length;
    print(`${file}: invalid, ${errors} ${errors === 1 ? "error" : "errors"}`);
    return 1;
  }
  const format = origin === "legacy" ? "valid, a file of the old Go gateway" : "valid";
  print(`${file}: ${format}; listens on ${writtenAddress(config.listen)}`);
  if (config.relabel.rules.length > 0) print(`before all routes: ${describeRules(config.relabel)}`);
  for (const route of config.routes) {
    print(describeRoute(route));
    for (const warning of lumpiness(route)) print(warning);
  }
  return 0;
}

function writtenAddress({ host, port }: Config["listen"]): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

function describeRoute({ route }: RouteConfig): string {
  const { name, tasks, placement, keyFormat, upstreams } = route;
  const stage1 = tasks === null ? "no tasks" : describeTasks(tasks);
  const stage2 = `${upstreams.length} ${upstreams.length === 1 ? "upstream" : "upstreams"} by`;
  const key = placement.key.kind === "task" ? "the task" : describeKey(placement.key);
  const slots = `${stage2} ${key} (${placement.algorithm})`;
  const selection = describeSelection(route);
  const parts = [...selection, `${keyFormat} keys`, stage1, slots, describeBalance(route)];
  return `route ${name}: ${parts.join("; ")}`;
}

/** What a route does besides hashing; nothing for one that takes all series as they come. */
function describeSelection({ relabel, final, tenant, upstreams }: RouteConfig["route"]): string[] {
  const writing = upstreams
    .filter(({ writeRelabel }) => writeRelabel.rules.length > 0)
    .map(({ name, writeRelabel }) => `${writeRelabel.rules.length} for ${name}`);
  return [
    relabel.rules.length > 0 ? describeRules(relabel) : null,
    final ? "final" : null,
    describeTenant(tenant),
    writing.length > 0 ? `write rules: ${shortened(writing)}` : null,
  ].filter((part) => part !== null);
}

function describeRules({ rules, dialect }: RelabelRuleList): string {
  return `${rules.length} relabel ${rules.length === 1 ? "rule" : "rules"} (${dialect})`;
}

function describeTenant({ header, label, pass }: TenantOptions): string | null {
  const uses = [label === null ? [] : [`in label ${label}`], pass ? ["passed to upstreams"] : []].flat();
  return uses.length === 0 ? null : `tenant of header ${header} ${uses.join(" and ")}`;
}

function describeTasks({ count, label, algorithm, key }: TaskOptions): string {
  return `${count} ${count === 1 ? "task" : "tasks"} in label ${label} by ${describeKey(key)} (${algorithm})`;
}

function describeKey(key: KeyRule): string {
  switch (key.kind) {
    case "all":
      return "all labels";
    case "by":
      return `labels ${key.names.join(", ")}`;
    case "without":
      return `all labels without ${key.names.join(", ")}`;
  }
}

function describeBalance({ tasks, placement, upstreams }: RouteConfig["route"]): string {
  if (tasks === null || placement.key.kind !== "task") return "how even this is depends on the series";
  if (tasks.count > MAX_TASKS_COUNTED) return `balance not counted, more than ${MAX_TASKS_COUNTED} tasks`;
  const { maxOverAverage, emptySlots } = taskBalance(tasks.count, placement, upstreams);
  const empty = emptySlots.map((slot) => upstreams[slot]?.name ?? "");
  const withoutTasks =
    empty.length === 0 ? "none without tasks" : `${empty.length} without tasks: ${shortened(empty)}`;
  return `the fullest has ${maxOverAverage.toFixed(2)} times the average, ${withoutTasks}`;
}

function shortened(names: readonly string[]): string {
  const more = names.length - MAX_NAMES_SHOWN;
  return names.slice(0, MAX_NAMES_SHOWN).join(", ") + (more > 0 ? ` and ${more} more` : "");
}

function lumpiness({ route: { name, tasks, placement, upstreams } }: RouteConfig): string[] {
  if (tasks === null || placement.key.kind !== "task" || placement.algorithm !== "jump") return [];
  const share = tasks.count / upstreams.length;
  if (upstreams.length === 1 || share >= ENOUGH_TASKS_A_SLOT) return [];
  const enough = ENOUGH_TASKS_A_SLOT * upstreams.length;
  return [
    `warning: route ${name}: ${share.toFixed(1)} tasks for each upstream spread unevenly; ` +
      `want at least ${ENOUGH_TASKS_A_SLOT}, here ${enough} tasks`,
  ];
}
