/**
 * A change of a route's list of upstreams, written as a period of its topology.
 *
 * It is put together from the nodes of the two documents, so that what an upstream needs to be reached stands there as its
 * owner wrote it, and nothing that was read from other files.
 */
import { formatMoment } from "../moment.ts";
import type { ConfigNode, MapNode, TextNode } from "../config/node.ts";

type ListNode = Extract<ConfigNode, { kind: "list" }>;

interface PeriodNode {
  /** null for the first. */
  readonly from: ConfigNode | null;
  readonly upstreams: readonly MapNode[];
}

/** What of an upstream may differ from period to period; the rest is said once. */
const OF_A_PERIOD = ["name", "weight", "removed"];

/** A moment at which all replicas have the change: rounded up, so that windows of that length begin with it. */
export function effectiveFrom(nowMs: number, effectiveMs: number, roundMs: number): string {
  const atMs = Math.ceil((nowMs + effectiveMs) / roundMs) * roundMs;
  return formatMoment(atMs);
}

/**
 * The topology that has the periods of the old document and, from a moment on, the new document's newest list.
 *
 * @param from as RFC 3339
 * @returns null where one of the documents does not have the route
 */
export function proposedTopology(
  before: MapNode,
  after: MapNode,
  route: string,
  from: string,
): ConfigNode | null {
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
  const periods = [...old, { from: textAt(from, place), upstreams: newest.upstreams }];
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

/** An upstream with all that is known of it where it comes first, and with its name from then on. */
function describedOnce(
  upstream: MapNode,
  described: ReadonlyMap<string, MapNode>,
  told: Set<string>,
): MapNode {
  const name = nameOf(upstream);
  const isTombstone = valueOf(upstream, "removed") === "true";
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
  const route = routes.find((item): item is MapNode => item.kind === "map" && valueOf(item, "name") === name);
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

function nameOf(upstream: MapNode): string {
  return valueOf(upstream, "name") ?? "";
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
