/** `routes[]`: what a route is called, which series it takes, how it keys them, and where they go. */
import type { KeyFormat, KeyRule } from "../hash/keyRule.ts";
import type { PlacementKey, PlacementOptions, TaskOptions } from "../route/options.ts";
import type { RouteConfig } from "./config.ts";
import { readDelivery } from "./deliverySection.ts";
import type { ConfigNode } from "./node.ts";
import type { Place } from "./problem.ts";
import { listOf, setOf, someOf } from "./lists.ts";
import { warnOfOverwritten } from "./ruleReader.ts";
import type { RuleReader } from "./ruleReader.ts";
import { flag, integer, name, oneOf, ownLabel, text, wrong } from "./scalars.ts";
import { sectionOf } from "./section.ts";
import type { Reader, Section } from "./section.ts";
import { readTenant } from "./tenantSection.ts";
import { UpstreamReader } from "./upstreamSection.ts";
import type { RouteUpstream, UpstreamContext } from "./upstreamSection.ts";

const MAX_BUCKETS = 2 ** 31 - 1;

const ALGORITHM = oneOf("jump", "hashmod");
const LABEL_NAMES = setOf(text, "label names");
const NO_NAMES: readonly string[] = [];
const SOME_LABEL_NAMES = someOf(LABEL_NAMES, "label names");

/** Reads the routes of one file; it remembers their names, which must differ, and which of them leaves nothing to others. */
export class RouteReader {
  readonly #upstreams: UpstreamReader;
  readonly #rules: RuleReader;
  readonly #names = new Map<string, Place>();
  /** Where the first route that keeps all series says that it is final. */
  #takesAll: Place | null = null;

  constructor(folder: string, rules: RuleReader) {
    this.#rules = rules;
    this.#upstreams = new UpstreamReader(folder, rules);
  }

  readonly read: Reader<RouteConfig> = (node, problems) =>
    sectionOf((route) => this.#route(route))(node, problems);

  #route(route: Section): RouteConfig {
    const routeName = route.required("name", name, "a name for the route") ?? "";
    this.#checkNew(routeName, route);
    const dialect = route.optional("relabel_dialect", oneOf("prometheus", "victoriametrics"), "prometheus");
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
    const placement = route.section("placement", (section) => {
      return readPlacement(section, { keyFormat, tasks, hasTasks: route.has("tasks") });
    });
    if (tasks !== null) warnOfOverwritten(route, rulesKey, relabel, tasks.label);
    const tenant = route.section("tenant", (section) => readTenant(section, tasks?.label ?? null));
    const tenantHeader = tenant.pass ? tenant.header : null;
    const upstreams = this.#readUpstreams(route, { dialect, tenantHeader });
    warnOfIdleSlots(route, tasks, placement, upstreams.length);
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
        upstreams: upstreams.map(({ options, writeRelabel }) => ({ name: options.name, writeRelabel })),
      },
      upstreams: upstreams.map(({ options }) => options),
      delivery: { ...delivery, tenantHeader },
    };
  }

  #readUpstreams(route: Section, context: UpstreamContext): readonly RouteUpstream[] {
    const list = someOf(listOf(this.#upstreams.readerForRoute(context), "upstreams"), "upstreams");
    return route.required("upstreams", list, "a list of upstreams") ?? [];
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

function refuseBoth(section: Section): void {
  if (section.has("by") && section.has("without")) {
    section.problems.error(section.placeOf("without"), "want either by or without; got both");
  }
}

interface Stage1 {
  readonly keyFormat: KeyFormat;
  /** null as well when it was wrong. */
  readonly tasks: TaskOptions | null;
  readonly hasTasks: boolean;
}

function readPlacement(placement: Section, stage1: Stage1): PlacementOptions {
  const usual: PlacementKey = stage1.hasTasks ? { kind: "task" } : { kind: "all" };
  const given = placement.node("key");
  const key = given === null ? usual : placementKey(given, placement.problems);
  const missingKey = placement.optional("missing_key", oneOf("one_place", "whole_set"), "one_place");
  if (key !== null) checkPlacementKey(placement, key, stage1);
  if (key !== null && key.kind !== "by" && missingKey === "whole_set") {
    const message = "whole_set has a meaning only with key: {by: [...]}; leave it out";
    placement.problems.error(placement.placeOf("missing_key"), message);
  }
  return { key: key ?? usual, algorithm: placement.optional("algorithm", ALGORITHM, "jump"), missingKey };
}

const placementKey: Reader<PlacementKey> = (node, problems) => {
  if (node.kind === "map") return sectionOf(readLabelKey)(node, problems);
  if (node.kind === "text" && node.text === "task") return { kind: "task" };
  if (node.kind === "text" && node.text === "series") return { kind: "all" };
  return wrong(node, problems, "task, series, {by: [...]} or {without: [...]}");
};

function readLabelKey(key: Section): PlacementKey | null {
  refuseBoth(key);
  const by = key.optional("by", SOME_LABEL_NAMES, null);
  const without = key.optional("without", SOME_LABEL_NAMES, null);
  if (by !== null) return { kind: "by", names: by };
  if (without !== null) return { kind: "without", names: without };
  if (!key.has("by") && !key.has("without")) key.problems.error(key.place, "want by or without; got neither");
  return null;
}

function checkPlacementKey(
  placement: Section,
  key: PlacementKey,
  { keyFormat, tasks, hasTasks }: Stage1,
): void {
  if (key.kind === "task" && !hasTasks) {
    placement.problems.error(
      placement.placeOf("key"),
      "task needs tasks in this route; want tasks, or key: series",
    );
  }
  // Old files may hash the task by its label; in keys of pairs nobody has a reason to.
  if (key.kind === "by" && keyFormat === "pairs" && tasks !== null && key.names.includes(tasks.label)) {
    const message = `${tasks.label} is the task label; want key: task, or the label only with key_format: flat`;
    placement.problems.error(placement.placeOf("key"), message);
  }
}

function warnOfIdleSlots(
  route: Section,
  tasks: TaskOptions | null,
  placement: PlacementOptions,
  slots: number,
): void {
  if (tasks === null || placement.key.kind !== "task" || slots <= tasks.count) return;
  const message = `${slots} upstreams for ${tasks.count} tasks: with key: task at least ${slots - tasks.count} get nothing`;
  route.problems.warning(route.placeOf("upstreams"), message);
}
