/** `routes[]`: what a route is called, which series it takes, how it keys them, and where they go. */
import type { KeyRule } from "../hash/keyRule.ts";
import type { PlacementCheck } from "../hash/placementFault.ts";
import type { RelabelDialect } from "../relabel/options.ts";
import type { PlacementOptions, TaskOptions } from "../route/options.ts";
import type { RouteConfig } from "./config.ts";
import { readDelivery } from "./deliverySection.ts";
import type { ConfigNode } from "./node.ts";
import { readPlacement, refuseBoth } from "./placementSection.ts";
import type { Place } from "./problem.ts";
import { setOf, someOf } from "./lists.ts";
import { warnOfOverwritten } from "./ruleReader.ts";
import type { RuleReader } from "./ruleReader.ts";
import { flag, integer, name, oneOf, ownLabel, text } from "./scalars.ts";
import type { SecretFiles } from "./secrets.ts";
import { sectionOf } from "./section.ts";
import type { Reader, Section } from "./section.ts";
import { readTenant } from "./tenantSection.ts";
import { liveUpstreams, readPeriods } from "./topologySection.ts";
import type { ListedPeriod } from "./topologySection.ts";
import { duration } from "./units.ts";
import { UpstreamReader } from "./upstreamSection.ts";

const MAX_BUCKETS = 2 ** 31 - 1;
const RETIRE_AFTER_MS = 3_600_000;

const ALGORITHM = oneOf("jump", "hashmod");
const LABEL_NAMES = setOf(text, "label names");
const NO_NAMES: readonly string[] = [];
const SOME_LABEL_NAMES = someOf(LABEL_NAMES, "label names");

/** Reads the routes of one file; it remembers their names, which must differ, and which of them leaves nothing to others. */
export class RouteReader {
  readonly #upstreams: UpstreamReader;
  readonly #rules: RuleReader;
  readonly #checkPlacement: PlacementCheck;
  readonly #names = new Map<string, Place>();
  /** Where the first route that keeps all series says that it is final. */
  #takesAll: Place | null = null;

  constructor(files: SecretFiles, rules: RuleReader, checkPlacement: PlacementCheck) {
    this.#rules = rules;
    this.#checkPlacement = checkPlacement;
    this.#upstreams = new UpstreamReader(files, rules);
  }

  readonly read: Reader<RouteConfig> = (node, problems) =>
    sectionOf((route) => this.#route(route))(node, problems);

  #route(route: Section): RouteConfig {
    const routeName = route.required("name", name, "a name for the route") ?? "";
    this.#checkNew(routeName, route);
    const dialect = readDialect(route);
    const rulesKey = keyOfRules(route);
    const relabel = this.#rules.read(route, rulesKey, dialect);
    const final = this.#readFinal(route, route.node(rulesKey));
    const keyFormat = route.optional("key_format", oneOf("pairs", "flat"), "pairs");
    const tasks = route.optional("tasks", sectionOf(readTasks), null);
    // Elsewhere an empty key means the default; here it could as well be meant as tasks with theirs.
    if (route.isEmpty("tasks")) {
      const message = "empty; want a map such as {count: 128}, or no such key for no task label";
      route.problems.error(route.placeOf("tasks"), message);
    }
    if (tasks !== null) warnOfOverwritten(route, rulesKey, relabel, tasks.label);
    const tenant = route.section("tenant", (section) => readTenant(section, tasks?.label ?? null));
    const tenantHeader = tenant.pass ? tenant.header : null;
    const periods = readPeriods(route, this.#upstreams.readerForRoute({ dialect, tenantHeader }));
    const placed = {
      keyFormat,
      tasks,
      hasTasks: route.has("tasks"),
      periods,
    };
    const placement = route.section("placement", (section) =>
      readPlacement(section, placed, this.#checkPlacement),
    );
    const live = liveUpstreams(periods ?? []);
    const retireAfterMs = route.optional("retire_after", duration({ min: 0 }), RETIRE_AFTER_MS);
    for (const period of periods ?? []) warnOfIdleSlots(route, tasks, placement, period);
    const delivery = route.section("delivery", readDelivery);
    return {
      route: {
        name: routeName,
        tenant,
        relabel,
        final,
        keyFormat,
        tasks,
        placement,
        topology: (periods ?? []).map(({ fromMs, upstreams }) => {
          return { fromMs, slots: upstreams.map(({ slot }) => slot) };
        }),
        upstreams: live.map(({ options, writeRelabel }) => ({ name: options.name, writeRelabel })),
        retireAfterMs,
      },
      upstreams: live.map(({ options }) => options),
      delivery: { ...delivery, tenantHeader },
    };
  }

  #readFinal(route: Section, rules: ConfigNode | null): boolean {
    if (this.#takesAll !== null) {
      const message = "no series goes to the routes behind this one, since it has no rules and keeps all";
      route.problems.warning(this.#takesAll, message);
    }
    const final = route.optional("final", flag, false);
    const keepsAll = rules === null || (rules.kind === "list" && rules.items.length === 0);
    if (final && keepsAll) this.#takesAll ??= route.placeOf("final");
    return final;
  }

  #checkNew(routeName: string, route: Section): void {
    const place = route.placeOf("name");
    const earlier = this.#names.get(routeName);
    if (earlier === undefined) this.#names.set(routeName, place);
    else if (routeName !== "") {
      route.problems.error(place, `want another name; the route at line ${earlier.line} has this one`);
    }
  }
}

/** null when it is wrong. */
function readDialect(route: Section): RelabelDialect | null {
  const absent = route.has("relabel_dialect") ? null : "prometheus";
  return route.optional("relabel_dialect", oneOf("prometheus", "victoriametrics"), absent);
}

/** Under which of its two names a route has its rules. */
function keyOfRules(route: Section): string {
  const [usual, other] = ["relabel_configs", "metric_relabel_configs"] as const;
  const [hasUsual, hasOther] = [route.has(usual), route.has(other)];
  if (hasUsual && hasOther) {
    route.problems.error(route.placeOf(other), `want either ${usual} or ${other}; got both`);
  }
  return hasOther && !hasUsual ? other : usual;
}

function readTasks(tasks: Section): TaskOptions {
  const count = { min: 1, max: MAX_BUCKETS, because: "the most that jump hash can number" };
  const label = tasks.optional("label", ownLabel, "stream_task_id");
  return {
    count: tasks.optional("count", integer(count), 128),
    label,
    algorithm: tasks.optional("algorithm", ALGORITHM, "jump"),
    key: readTaskKey(tasks, label),
  };
}

/** An empty `by` is its default, the whole label set. */
function readTaskKey(tasks: Section, label: string): KeyRule {
  const by = tasks.optional("by", LABEL_NAMES, NO_NAMES);
  const without = tasks.optional("without", SOME_LABEL_NAMES, NO_NAMES);
  if (by.includes(label)) {
    const message = `want labels of the series; ${label} is the task label, which this key is there to find`;
    tasks.problems.error(tasks.placeOf("by"), message);
  }
  if (by.length > 0) refuseBoth(tasks);
  if (by.length > 0) return { kind: "by", names: by };
  return without.length > 0 ? { kind: "without", names: without } : { kind: "all" };
}

function warnOfIdleSlots(
  route: Section,
  tasks: TaskOptions | null,
  placement: PlacementOptions,
  { upstreams, place }: ListedPeriod,
): void {
  const live = upstreams.filter(({ slot }) => slot.removed !== true).length;
  if (tasks === null || placement.key.kind !== "task") return;
  const copies = tasks.count * placement.replicas;
  if (live <= copies) return;
  const message =
    `${live} upstreams for ${copies} ${placement.replicas === 1 ? "tasks" : "copies of tasks"}: ` +
    `with key: task at least ${live - copies} get nothing; want more tasks, or fewer upstreams`;
  route.problems.warning(place, message);
}
