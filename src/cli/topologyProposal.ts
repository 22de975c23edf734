/**
 * A change of a route's list of upstreams, written as a period of its topology.
 *
 * It is put together from the nodes of the two documents, so that what an upstream needs to be reached stands there as its
 * owner wrote it, and nothing that was read from other files.
 */
import { formatMoment } from "../moment.ts";
import type { ConfigNode, MapNode, TextNode } from "../config/node.ts";
import type { Place } from "../config/problem.ts";

type ListNode = Extract<ConfigNode, { kind: "list" }>;

interface PeriodNode {
  /** null for the first. */
  readonly from: ConfigNode | null;
  readonly upstreams: readonly MapNode[];
}

/** What of an upstream may differ from period to period; the rest is said once. */
const OF_A_PERIOD = ["name", "weight", "removed"];

/**
 * A moment at which all replicas have the change: rounded up, so that windows of that length begin with it.
 *
 * @returns milliseconds since the epoch
 */
export function effectiveFrom(nowMs: number, effectiveMs: number, roundMs: number): number {
  return Math.ceil((nowMs + effectiveMs) / roundMs) * roundMs;
}

/**
 * The topology that has the periods of the old document and, from a moment on, the new document's newest list.
 *
 * @param fromMs behind those of all periods of the old document, in milliseconds since the epoch
 * @returns null where one of the documents does not have the route
 */
export function proposedTopology(
  before: MapNode,
  after: MapNode,
  route: string,
  fromMs: number,
): MapNode | null {
  const [old, now] = [periodsOf(before, route), periodsOf(after, route)];
  const newest = now?.at(-1);
  const [first] = old ?? [];
  if (old === null || now === null || newest === undefined || first === undefined) return null;
  const { place } = newest.upstreams[0] ?? after;
  const described = new Map<string, MapNode>();
  for (const { upstreams } of [...old, ...now]) {
    // What the new document says of an upstream is what is to be.
    for (const upstream of upstreams)
      if (upstream.entries.has("url")) described.set(nameOf(upstream), upstream);
  }
  const periods = [...old, { from: textAt(formatMoment(fromMs), place), upstreams: newest.upstreams }];
  const told = new Set<string>();
  const items = periods.map((period): ConfigNode => {
    const upstreams = period.upstreams.map((upstream) => describedOnce(upstream, described, told));
    const list: ConfigNode = { kind: "list", place, items: upstreams };
    return mapOf(
      [...(period.from === null ? [] : [["from", period.from] as const]), ["upstreams", list]],
      place,
    );
  });
  return mapOf([["topology", { kind: "list", place, items }]], place);
}

/** Where the newest period of a route begins, in its document; null without periods. */
export function newestFromPlace(document: MapNode, route: string): Place | null {
  return periodsOf(document, route)?.at(-1)?.from?.place ?? null;
}

/** A document in which routes have the topologies that are proposed for them, by their names, in the place of their lists. */
export function withTopologies(document: MapNode, proposed: ReadonlyMap<string, MapNode>): MapNode {
  const routes = listOf(document, "routes");
  if (routes === null) return document;
  const items = routes.items.map((route): ConfigNode => {
    const topology = route.kind === "map" ? proposed.get(nameOf(route)) : undefined;
    if (route.kind !== "map" || topology === undefined) return route;
    const others = [...route.entries].filter(([key]) => key !== "upstreams" && key !== "topology");
    return { ...route, entries: new Map([...others, ...topology.entries]) };
  });
  const changed = { key: routes.place, value: { ...routes, items } };
  return { ...document, entries: new Map([...document.entries, ["routes", changed]]) };
}

/** An upstream with all that is known of it where it comes first, and with its name from then on. */
function describedOnce(
  upstream: MapNode,
  described: ReadonlyMap<string, MapNode>,
  told: Set<string>,
): MapNode {
  const name = nameOf(upstream);
  const isTombstone = /^true$/i.test(valueOf(upstream, "removed") ?? "");
  const ofPeriod = [...upstream.entries].filter(([key]) => OF_A_PERIOD.includes(key));
  const full = described.get(name);
  if (isTombstone || full === undefined || told.has(name)) {
    return { ...upstream, entries: new Map(ofPeriod) };
  }
  told.add(name);
  const rest = [...full.entries].filter(([key]) => !OF_A_PERIOD.includes(key));
  return { ...upstream, entries: new Map([...ofPeriod, ...rest]) };
}

/** null when there is no such route, or it has no upstreams. */
function periodsOf(document: MapNode, name: string): readonly PeriodNode[] | null {
  const routes = listOf(document, "routes")?.items ?? [];
  const route = routes.find((item): item is MapNode => item.kind === "map" && nameOf(item) === name);
  if (route === undefined) return null;
  const topology = listOf(route, "topology");
  if (topology === null) {
    const upstreams = mapsIn(listOf(route, "upstreams"));
    return upstreams.length === 0 ? null : [{ from: null, upstreams }];
  }
  return mapsIn(topology).map((period) => ({
    from: period.entries.get("from")?.value ?? null,
    upstreams: mapsIn(listOf(period, "upstreams")),
  }));
}

function listOf(node: MapNode, key: string): ListNode | null {
  const value = node.entries.get(key)?.value;
  return value?.kind === "list" ? value : null;
}

function mapsIn(list: ListNode | null): readonly MapNode[] {
  return (list?.items ?? []).filter((item): item is MapNode => item.kind === "map");
}

function valueOf(node: MapNode, key: string): string | null {
  const value = node.entries.get(key)?.value;
  return value?.kind === "text" ? value.text : null;
}

/** Of a route or an upstream. */
function nameOf(named: MapNode): string {
  return valueOf(named, "name") ?? "";
}

function textAt(text: string, place: MapNode["place"]): TextNode {
  return { kind: "text", place, text, plain: true };
}

function mapOf(entries: readonly (readonly [string, ConfigNode])[], place: MapNode["place"]): MapNode {
  return {
    kind: "map",
    place,
    entries: new Map(entries.map(([key, value]) => [key, { key: place, value }])),
  };
}
