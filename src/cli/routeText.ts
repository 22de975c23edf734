/** What `check` says of a route. */
import { formatMoment } from "../moment.ts";
import type { KeyRule } from "../hash/keyRule.ts";
import type { PlacementMethod } from "../hash/placement.ts";
import type { RelabelRuleList } from "../relabel/options.ts";
import { taskBalance } from "../route/balance.ts";
import { newestPeriod } from "../route/renumbering.ts";
import type { Period, RouteOptions, TaskOptions, TenantOptions } from "../route/options.ts";
import { shortened } from "../plan/shortened.ts";

/**
 * Fewer tasks than this for each upstream spread too unevenly: under jump some upstreams get half as much again; under
 * balanced one task more or less counts for too much. With replicas balanced is no better than jump, since it places the first
 * copies alone.
 */
const ENOUGH_TASKS = { jump: 40, balanced: 10 } as const;

/** Under other algorithms names decide, so it is the outcome that is too uneven. */
const UNEVEN = 1.5;

/** Placing more tasks one by one would take seconds; so many spread evenly anyway. */
const MAX_TASKS_COUNTED = 1_000_000;

/**
 * In one line: which series it takes, how it keys and places them, and how even that is; of several periods only how many, see
 * periodTexts().
 */
export function routeText(route: RouteOptions): string {
  const { tasks, keyFormat } = route;
  const stage1 = tasks === null ? "no tasks" : describeTasks(tasks);
  const parts = [
    ...describeSelection(route),
    `${keyFormat} keys`,
    stage1,
    ...(route.topology.length === 1
      ? describePeriod(route, newestPeriod(route))
      : [`${route.topology.length} periods`]),
  ];
  return parts.join("; ");
}

/** The periods of a route that has several, a line for each: when they are in force, their slots, and how even that is. */
export function periodTexts(route: RouteOptions): string[] {
  if (route.topology.length === 1) return [];
  return route.topology.map((period, index) => {
    const when = [
      ...(period.fromMs === null ? [] : [`from ${formatMoment(period.fromMs)}`]),
      ...untilText(route.topology[index + 1]),
    ];
    return `${when.join(" ")}: ${describePeriod(route, period).join("; ")}`;
  });
}

function untilText(next: Period | undefined): string[] {
  return next === undefined || next.fromMs === null ? [] : [`until ${formatMoment(next.fromMs)}`];
}

function describePeriod(route: RouteOptions, period: Period): string[] {
  return [...describeSlots(route, period), describeBalance(route, period)];
}

function describeSlots({ placement }: RouteOptions, { slots }: Period): string[] {
  const live = countLive(slots);
  const key = placement.key.kind === "task" ? "the task" : describeKey(placement.key);
  const removed = slots.filter((slot) => slot.removed === true).map(({ name }) => name);
  const weights = slots.flatMap(({ name, weight }) => (weight === undefined ? [] : [`${name} ${weight}`]));
  return [
    `${describeReplicas(placement)}${live} ${live === 1 ? "upstream" : "upstreams"} by ${key} (${describeMethod(placement)})`,
    ...(weights.length > 0 ? [`weights: ${shortened(weights)}`] : []),
    ...(removed.length > 0
      ? [`${removed.length} of ${slots.length} upstreams removed: ${shortened(removed)}`]
      : []),
  ];
}

function describeReplicas({ replicas }: RouteOptions["placement"]): string {
  return replicas === 1 ? "" : `each series on ${replicas} of `;
}

function countLive(slots: Period["slots"]): number {
  return slots.filter(({ removed }) => removed !== true).length;
}

function describeMethod(method: PlacementMethod): string {
  switch (method.algorithm) {
    case "ring":
      return `ring, ${method.points} points of ${method.hash}`;
    case "maglev":
      return `maglev, a table of ${method.table}`;
    case "multi_probe":
      return `multi_probe, ${method.probes} ${method.probes === 1 ? "probe" : "probes"}`;
    case "jump":
    case "hashmod":
    case "balanced":
    case "rendezvous":
      return method.algorithm;
  }
}

/** What a route does besides hashing; nothing for one that takes all series as they come. */
function describeSelection({ relabel, final, tenant, upstreams }: RouteOptions): string[] {
  const writing = upstreams
    .filter(({ writeRelabel }) => writeRelabel.rules.length > 0)
    .map(({ name, writeRelabel }) => `${writeRelabel.rules.length} for ${name}`);
  return [
    relabel.rules.length > 0 ? rulesText(relabel) : null,
    final ? "final" : null,
    describeTenant(tenant),
    writing.length > 0 ? `write rules: ${shortened(writing)}` : null,
  ].filter((part) => part !== null);
}

export function rulesText({ rules, dialect }: RelabelRuleList): string {
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

function describeBalance({ tasks, placement }: RouteOptions, { slots }: Period): string {
  if (tasks === null || placement.key.kind !== "task") return "how even this is depends on the series";
  const { replicas } = placement;
  if (tasks.count * replicas > MAX_TASKS_COUNTED)
    return `balance not counted, more than ${MAX_TASKS_COUNTED} ${replicas === 1 ? "tasks" : "copies of tasks"}`;
  const { maxOverAverage, emptySlots } = taskBalance(tasks.count, placement, slots, replicas);
  const empty = emptySlots.map((slot) => slots[slot]?.name ?? "");
  const withoutTasks =
    empty.length === 0 ? "none without tasks" : `${empty.length} without tasks: ${shortened(empty)}`;
  return `the fullest has ${maxOverAverage.toFixed(2)} times the average, ${withoutTasks}`;
}

/** Why tasks spread too unevenly, and what to do; null where they do not, or where that depends on the series. */
export function unevenText(route: RouteOptions): string | null {
  const { tasks, placement } = route;
  const { slots } = newestPeriod(route);
  if (tasks === null || placement.key.kind !== "task") return null;
  const live = countLive(slots);
  const { algorithm, replicas } = placement;
  // Then every upstream has every task.
  if (live === replicas) return null;
  const copies = tasks.count * replicas;
  if (algorithm === "jump" || algorithm === "balanced") {
    const share = copies / live;
    const least = replicas === 1 ? ENOUGH_TASKS[algorithm] : ENOUGH_TASKS.jump;
    if (share >= least) return null;
    return (
      `${share.toFixed(1)} tasks for each upstream spread unevenly; ` +
      `want at least ${least}, here ${Math.ceil((least * live) / replicas)} tasks`
    );
  }
  // Fewer tasks than upstreams are warned about already, and who gives weights wants it uneven.
  const isWeighted = slots.some(({ weight }) => weight !== undefined);
  if (copies < live || copies > MAX_TASKS_COUNTED || isWeighted) return null;
  const { maxOverAverage } = taskBalance(tasks.count, placement, slots, replicas);
  if (maxOverAverage < UNEVEN) return null;
  return (
    `${tasks.count} tasks spread unevenly over these ${live} upstreams; want more tasks` +
    (replicas === 1 ? ", or algorithm: balanced, which gives every upstream as many" : "")
  );
}
