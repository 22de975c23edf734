/**
 * The text of the file in which the gateway keeps how its routes place series: JSON, for the next start to compare with.
 *
 * It holds names and what placement goes by, and neither urls nor secrets. What is read was written by some version of the
 * gateway and may be damaged since, or changed by hand, so nothing in it is believed unseen.
 */
import { placementFault } from "../hash/placementFault.ts";
import {
  newestPeriod,
  newestPlacement,
  placementIn,
  type RoutePlacement,
  type RouteTopology,
} from "../route/renumbering.ts";
import type { KnownRoute } from "../plan/changeText.ts";

/** Grows whenever a file of this version would be misread. */
const FORMAT = 1;

const MAX_NAME_LENGTH = 200;
/** The end of the year 9999, the last that is written in four digits. */
const LATEST_MS = Date.UTC(10_000, 0, 1) - 1;

/** @param routes in the order of the configuration */
export function writeKnownRoutes(routes: readonly KnownRoute[]): string {
  const stored = routes.map(({ last, earlier }) => {
    return {
      last: storedTopology(last),
      earlier: earlier === null ? null : withoutRest(earlier),
    };
  });
  return `${JSON.stringify({ version: FORMAT, routes: stored }, null, 2)}\n`;
}

/** The newest period as that of a route which has only one, so that versions which know no others can read it. */
function storedTopology(route: RouteTopology): StoredTopology {
  const newest = withoutRest(newestPlacement(route));
  const { fromMs } = newestPeriod(route);
  if (fromMs === null) return newest;
  const past = route.topology.slice(0, -1).map((period) => {
    return { fromMs: period.fromMs, upstreams: withoutRest(placementIn(route, period)).upstreams };
  });
  return { ...newest, fromMs, past };
}

function topologyOf({ upstreams, fromMs, past = [], ...route }: StoredTopology): RouteTopology {
  const periods = past.map((period) => ({ fromMs: period.fromMs, slots: period.upstreams }));
  return { ...route, topology: [...periods, { fromMs: fromMs ?? null, slots: upstreams }] };
}

/** A route as it is configured has rules and credentials besides. */
function withoutRest({ name, keyFormat, tasks, placement, upstreams }: RoutePlacement): RoutePlacement {
  const slots = upstreams.map((slot) => ({
    name: slot.name,
    ...(slot.weight === undefined ? {} : { weight: slot.weight }),
    ...(slot.removed === true ? { removed: true } : {}),
  }));
  return { name, keyFormat, tasks, placement, upstreams: slots };
}

/** Whether some version of the gateway has written it; no configuration has a `version`. */
export function isKnownFile(text: string): boolean {
  const content = contentOf(text);
  return isMap(content) && "version" in content;
}

function contentOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Answers why not, when the text is none that this version writes. */
export function readKnownRoutes(text: string): readonly KnownRoute[] | string {
  const content = contentOf(text);
  if (content === undefined) return "it is no JSON";
  if (!isMap(content) || !("version" in content)) return "it is not of this gateway";
  if (content["version"] !== FORMAT) return `its format is not ${FORMAT}, the one of this version`;
  const routes = content["routes"];
  if (!Array.isArray(routes) || !routes.every(isStoredRoute)) return "what it holds makes no sense";
  return routes.map(({ last, earlier }) => ({ last: topologyOf(last), earlier }));
}

interface StoredRoute {
  readonly last: StoredTopology;
  readonly earlier: RoutePlacement | null;
}

/** The upstreams are those of the newest period. */
type StoredTopology = RoutePlacement & {
  /** Both are absent where it is the only one. */
  readonly fromMs?: number;
  readonly past?: readonly {
    readonly fromMs: number | null;
    readonly upstreams: RoutePlacement["upstreams"];
  }[];
};

type Values = Readonly<Record<string, unknown>>;
type IsValid = (value: unknown) => boolean;

function isStoredRoute(value: unknown): value is StoredRoute {
  return (
    isMap(value) && isTopology(value["last"]) && (value["earlier"] === null || isRoute(value["earlier"]))
  );
}

/** A route whose past periods go with its placement as its newest does, and whose moments ascend from none on. */
function isTopology(value: unknown): value is StoredTopology {
  if (!isRoute(value)) return false;
  const { fromMs, past } = value as Values;
  if (fromMs === undefined && past === undefined) return true;
  if (!Array.isArray(past) || !past.every(isMap)) return false;
  const moments = [...past.map((period) => period["fromMs"]), fromMs];
  const ascend = moments.every((moment, index) =>
    index === 0 ? moment === null : isMoment(moment) && moment > Number(moments[index - 1]),
  );
  return ascend && past.length > 0 && past.every(({ upstreams }) => isRoute({ ...value, upstreams }));
}

/** Numbers that a date can be made of. */
function isMoment(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) <= LATEST_MS;
}

function isRoute(value: unknown): value is RoutePlacement {
  if (!hasRouteFields(value)) return false;
  const { tasks, placement, upstreams } = value;
  const tablesTasks =
    placement.algorithm !== "balanced" ||
    (placement.key.kind === "task" && placement.tasks === (tasks?.count ?? null));
  return tablesTasks && placementFault(placement, upstreams, placement.replicas) === null;
}

/** Whether every field has its type; whether they go together is another question. */
function hasRouteFields(value: unknown): value is RoutePlacement {
  return hasFields(value, {
    name: isName,
    keyFormat: oneOf("pairs", "flat"),
    tasks: (tasks) => tasks === null || isTasks(tasks),
    placement: isPlacement,
    upstreams: (upstreams) => Array.isArray(upstreams) && upstreams.every(isSlot),
  });
}

const isTasks: IsValid = (value) =>
  hasFields(value, {
    count: isCount,
    label: isText,
    algorithm: oneOf("jump", "hashmod"),
    key: isKey("all", "by", "without"),
  });

const isPlacement: IsValid = (value) =>
  hasFields(value, {
    key: isKey("task", "all", "by", "without"),
    missingKey: oneOf("one_place", "whole_set"),
    replicas: isCount,
  }) && isMethod(value);

const isMethod: IsValid = (value) => {
  switch (isMap(value) ? value["algorithm"] : undefined) {
    case "jump":
    case "hashmod":
    case "rendezvous":
      return true;
    case "balanced":
      return hasFields(value, { tasks: (tasks) => tasks === null || isCount(tasks) });
    case "ring":
      return hasFields(value, { hash: oneOf("md5", "fnv1a"), points: isCount });
    case "maglev":
      return hasFields(value, { table: isCount });
    case "multi_probe":
      return hasFields(value, { probes: isCount });
    default:
      return false;
  }
};

const isSlot: IsValid = (value) =>
  hasFields(value, {
    name: isName,
    weight: (weight) => weight === undefined || typeof weight === "number",
    removed: (removed) => removed === undefined || typeof removed === "boolean",
  });

function isKey(...kinds: readonly string[]): IsValid {
  return (value) => {
    if (!isMap(value) || !oneOf(...kinds)(value["kind"])) return false;
    const { kind, names } = value;
    return kind === "task" || kind === "all" || (Array.isArray(names) && names.every(isText));
  };
}

function hasFields(value: unknown, fields: Readonly<Record<string, IsValid>>): boolean {
  return isMap(value) && Object.entries(fields).every(([field, isValid]) => isValid(value[field]));
}

function isMap(value: unknown): value is Values {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function oneOf(...values: readonly unknown[]): IsValid {
  return (value) => values.includes(value);
}

const isCount: IsValid = (value) =>
  Number.isInteger(value) && (value as number) >= 1 && (value as number) < 2 ** 31;

const isText: IsValid = (value) => typeof value === "string";

/** What a log line and a terminal can take. */
const isName: IsValid = (value) =>
  typeof value === "string" && value.length <= MAX_NAME_LENGTH && !/\p{Cc}/u.test(value);
