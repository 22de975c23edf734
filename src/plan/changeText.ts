/** What is said of a route whose upstreams changed: what that moves, and how to write the list so that less moves. */
import {
  compareSlots,
  goesByNumber,
  isRenumbered,
  movedShare,
  newestPeriod,
  newestPlacement,
  rewrittenPast,
} from "../route/renumbering.ts";
import type { RoutePlacement, RouteTopology, SlotChanges } from "../route/renumbering.ts";
import { formatMoment } from "../moment.ts";
import { shortened } from "./shortened.ts";

/** A route as it was placed before the change. */
export interface KnownRoute {
  /** Before this change. */
  readonly last: RouteTopology;
  /** Before the change that led to `last`, if that one renumbered slots; else null. */
  readonly earlier: RoutePlacement | null;
}

export interface RouteChange {
  /**
   * - `same`: nothing that counts here is different.
   * - `changed`: no number changes that keys go by, or they are the earlier ones again.
   * - `renumbered`: they change, and nearly everything moves.
   */
  readonly kind: "same" | "changed" | "renumbered";
  /** One line for a person. */
  readonly text: string;
  /** What to write, so that numbers stay, each in one line; empty where nothing is renumbered. */
  readonly remedies: readonly string[];
}

/** What is to be said of periods that begin in the past, and that the route did not have before: a line for each. */
export function pastTexts({ last }: KnownRoute, route: RouteTopology, nowMs: number): string[] {
  return rewrittenPast(last.topology, route.topology, nowMs).map(
    ({ fromMs }) =>
      `route ${route.name}: the period from ${formatMoment(fromMs)} is new and begins in the past: what was sent since then ` +
      "stays where it is, so aggregation windows between then and now are split; want a time to come",
  );
}

/** From when on the newest period is in force, where it is not the only one. */
function sinceText(route: RouteTopology): string {
  const { fromMs } = newestPeriod(route);
  return fromMs === null ? "" : `, from ${formatMoment(fromMs)} on`;
}

/** Follows remedies for a file of the old Go gateway. */
export const LEGACY_REMEDY =
  "this takes a native file: files of the old Go gateway have no tombstones; see the command convert";

/**
 * Compares a route with the one of its name that ran before, both as they are in their newest periods.
 *
 * @param from where `known` comes from
 */
export function describeChange(from: string, known: KnownRoute, route: RouteTopology): RouteChange {
  const { earlier } = known;
  const last = newestPlacement(known.last);
  const now = newestPlacement(route);
  const changes = compareSlots(last.upstreams, now.upstreams);
  const share = movedShare(last, now);
  const changed = [...methodText(last, now, share), ...listText(changes, now)];
  const lineOf = (...parts: readonly string[]): string =>
    `route ${now.name} against ${from}${sinceText(route)}: ${[...changed, ...parts].join("; ")}`;
  const moved = movedText(share, now);
  const hint =
    changes.replaced.length > 0 ? ["one that is only at another url keeps them by keeping its name"] : [];
  if (!isRenumbered(last, now)) {
    const kind = changed.length === 0 && share === 0 ? "same" : "changed";
    const stays = changed.length > 0 ? staysText(last, now, share) : [];
    return { kind, text: lineOf(moved, ...stays, ...hint), remedies: [] };
  }
  if (earlier !== null && !isRenumbered(earlier, now)) {
    const text = lineOf("numbers are again what they were before the last change", moved);
    return { kind: "changed", text, remedies: [] };
  }
  const text = lineOf(renumberingText(changes, last, now), moved, ...hint);
  return { kind: "renumbered", text, remedies: remedies(changes, last) };
}

/** The same as one line of a log. @param isLegacy whether the list is a file's of the old Go gateway */
export function changeLine({ text, remedies }: RouteChange, isLegacy: boolean): string {
  return [text, ...remedies, ...(isLegacy && remedies.length > 0 ? [LEGACY_REMEDY] : [])].join("; ");
}

/** How placement itself differs; nothing where keys are others, since that matters more. */
function methodText(before: RoutePlacement, now: RoutePlacement, share: number | null): string[] {
  if (share === null) return [];
  return [...algorithmText(before, now), ...replicasText(before, now)];
}

function algorithmText(before: RoutePlacement, now: RoutePlacement): string[] {
  const [old, algorithm] = [before.placement.algorithm, now.placement.algorithm];
  if (old !== algorithm) return [`${algorithm} in the place of ${old}`];
  const { replicas } = now.placement;
  const isSame = JSON.stringify({ ...before.placement, replicas }) === JSON.stringify(now.placement);
  return isSame ? [] : [`other options of ${algorithm}`];
}

function replicasText(before: RoutePlacement, now: RoutePlacement): string[] {
  const [old, replicas] = [before.placement.replicas, now.placement.replicas];
  if (old === replicas) return [];
  return [`${replicas} ${replicas === 1 ? "replica" : "replicas"} in the place of ${old}`];
}

function listText(changes: SlotChanges, { upstreams }: RoutePlacement): string[] {
  const tombstones = new Set(upstreams.filter(({ removed }) => removed === true).map(({ name }) => name));
  const replaced = changes.replaced.map((pair) => `${pair.before} by ${pair.now}`);
  const list = (what: string, names: readonly string[]): string[] =>
    names.length === 0 ? [] : [`${what} ${shortened(names)}`];
  return [
    ...list(
      "added",
      changes.added.filter((name) => !tombstones.has(name)),
    ),
    ...list(
      "added as tombstone",
      changes.added.filter((name) => tombstones.has(name)),
    ),
    ...list("taken out", changes.gone),
    ...list("replaced", replaced),
    ...list("removed", changes.removed),
    ...list("back", changes.restored),
    ...list("another weight for", changes.reweighted),
  ];
}

/** Which numbers change that keys go by. */
function renumberingText(changes: SlotChanges, before: RoutePlacement, now: RoutePlacement): string {
  const { algorithm } = now.placement;
  const numbers = changes.renumbered.map((slot) => `${slot.name} is ${slot.now} and was ${slot.before}`);
  if (numbers.length > 0) return `${algorithm} goes by number, and numbers change: ${shortened(numbers)}`;
  const [count, old] = [now.upstreams.length, before.upstreams.length];
  return `hashmod goes by how many there are, ${count} now and ${old} before, where jump moves few`;
}

function movedText(share: number | null, { placement }: RoutePlacement): string {
  if (share === null) return "keys are others than before, so nearly all series move";
  if (share === 0) return "nothing moves";
  const keys = placement.key.kind === "task" ? "tasks" : "keys";
  return `${(share * 100).toFixed(1)} % of its ${placement.replicas === 1 ? keys : `copies of ${keys}`} move`;
}

/** What can be said of the others where the list changes as it should. */
function staysText(before: RoutePlacement, now: RoutePlacement, share: number | null): string[] {
  const { algorithm } = now.placement;
  if (share === null || share === 0 || methodText(before, now, share).length > 0) return [];
  const why = goesByNumber(algorithm) ? "no number changes" : `${algorithm} goes by name`;
  return [
    `only keys of these upstreams${algorithm === "maglev" ? ", and a few others," : ""} do, since ${why}`,
  ];
}

/** How to write a list so that no number changes that keys go by, a line each; none where none changes. */
export function listRemedies(before: RoutePlacement, now: RoutePlacement): readonly string[] {
  return isRenumbered(before, now) ? remedies(compareSlots(before.upstreams, now.upstreams), before) : [];
}

function remedies({ remedy, replaced }: SlotChanges, { upstreams }: RoutePlacement): string[] {
  const { tombstones, toEnd, order } = remedy;
  const names = upstreams.map(({ name }) => name);
  for (const { slot, now } of replaced) names[slot] = now;
  // In an order in which each may be done as it stands.
  const lines: string[] = [];
  if (order.length > 0) lines.push(`in this order, as before: ${order.join(", ")}`);
  if (toEnd.length > 0) lines.push(`at the end of the list: ${toEnd.join(", ")}`);
  const stones = tombstones.map(({ slot, name }) => {
    const where = slot === 0 ? "at the top of" : `behind ${names[slot - 1] ?? ""} in`;
    return `${where} the list, so that those behind it keep their numbers: - {name: ${yamlText(name)}, removed: true}`;
  });
  return [...lines, ...stones].map((line) => `write ${line}`);
}

/** A name as YAML takes it for text; without quotes where it is a plain word. */
function yamlText(name: string): string {
  return /^[a-z][\w.-]*$/i.test(name) && !/^null$/i.test(name) ? name : JSON.stringify(name);
}
