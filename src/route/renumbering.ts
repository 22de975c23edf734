/**
 * What a change of a list of upstreams does to the numbers of its slots.
 *
 * jump, hashmod and balanced go by number: an upstream that is taken out of the list, or put in, before others gives those
 * other numbers, and with them the series of their neighbours. This tells it before it happens, and how to write the list so
 * that it does not.
 */
import { buildPlacement, type PlacementAlgorithm } from "../hash/placement.ts";
import type { NamedSlot } from "../hash/slots.ts";
import { periodAt } from "./epochs.ts";
import type { Period, RouteOptions } from "./options.ts";

/** What of a route says where its keys go, in all its periods. */
export type RouteTopology = Pick<RouteOptions, "name" | "keyFormat" | "tasks" | "placement" | "topology">;

/** The same in one of its periods: all that is compared here. */
export type RoutePlacement = Omit<RouteTopology, "topology"> & {
  /** By slot. */
  readonly upstreams: readonly NamedSlot[];
};

/** Placing this many keys tells a share within half a percent. */
const KEYS_PLACED = 100_000;
/** 2^32 divided by the golden ratio: its multiples lie evenly over all keys. */
const STEP = 0x9e3779b9;

export interface SlotChanges {
  /** Names that are new, in the place of none. */
  readonly added: readonly string[];
  /** Names that the list has no longer, and in whose place is no new one. */
  readonly gone: readonly string[];
  /** New names in the place of one that is gone: between the same of those that are left. By the number that it had. */
  readonly replaced: readonly { readonly slot: number; readonly before: string; readonly now: string }[];
  /** Names that are tombstones now and were live. */
  readonly removed: readonly string[];
  /** Names that are live now and were tombstones. */
  readonly restored: readonly string[];
  /** Names whose weight is another. */
  readonly reweighted: readonly string[];
  /** Names that both lists have, under different numbers. */
  readonly renumbered: readonly { readonly name: string; readonly before: number; readonly now: number }[];
  /** How to write the list without renumbering. */
  readonly remedy: Remedy;
}

/** Empty where nothing is renumbered. */
export interface Remedy {
  /** Of `gone`, those to be written as tombstones, in ascending order; the others were behind all that are left. */
  readonly tombstones: readonly { readonly slot: number; readonly name: string }[];
  /** Of `added`, those to be put behind all others. */
  readonly toEnd: readonly string[];
  /** Names that are left or have another's place, to be brought into this order; empty if they are in it. */
  readonly order: readonly string[];
}

/** A route as it places in one of its periods. */
export function placementIn(
  { name, keyFormat, tasks, placement }: RouteTopology,
  { slots }: Period,
): RoutePlacement {
  return { name, keyFormat, tasks, placement, upstreams: slots };
}

/** A route as it places in its newest period. */
export function newestPlacement(route: RouteTopology): RoutePlacement {
  return placementIn(route, newestPeriod(route));
}

/** The last period of a topology, which has one or more. */
export function newestPeriod({ topology }: Pick<RouteOptions, "topology">): Period {
  const newest = topology.at(-1);
  if (newest === undefined) throw new Error("bug: a topology of no periods");
  return newest;
}

/**
 * The periods that are in force already, and that a topology before did not have: since their moments it had other slots, or the
 * same ones otherwise. What it sent meanwhile is elsewhere than a topology says that has them.
 *
 * @param nowMs milliseconds since the epoch
 */
export function rewrittenPast(
  before: readonly Period[],
  now: readonly Period[],
  nowMs: number,
): readonly (Period & { readonly fromMs: number })[] {
  return now.flatMap(({ fromMs, slots }) => {
    if (fromMs === null || fromMs > nowMs) return [];
    const had = before[periodAt(before, fromMs)]?.slots ?? [];
    return haveSameSlots(had, slots) ? [] : [{ fromMs, slots }];
  });
}

function haveSameSlots(a: readonly NamedSlot[], b: readonly NamedSlot[]): boolean {
  return JSON.stringify(numbered(a)) === JSON.stringify(numbered(b));
}

/** Whether it gives a slot its keys by its number in the list; the other algorithms go by its name. */
export function goesByNumber(algorithm: PlacementAlgorithm): boolean {
  return algorithm === "jump" || algorithm === "hashmod" || algorithm === "balanced";
}

/**
 * Whether keys go by numbers, and these are others than before: those of some slots, or for hashmod how many there are. Then
 * far more moves than has to.
 */
export function isRenumbered(before: RoutePlacement, now: RoutePlacement): boolean {
  const { algorithm } = now.placement;
  if (!goesByNumber(algorithm) || !goesByNumber(before.placement.algorithm)) return false;
  if (algorithm === "hashmod" && before.upstreams.length !== now.upstreams.length) return true;
  return compareSlots(before.upstreams, now.upstreams).renumbered.length > 0;
}

/** A slot that both lists have. */
interface Kept {
  readonly name: string;
  readonly before: NumberedSlot;
  readonly now: NumberedSlot;
}

interface NumberedSlot {
  readonly number: number;
  readonly name: string;
  readonly removed: boolean;
  readonly weight: number;
}

/** Names are unique in each of the lists. */
export function compareSlots(before: readonly NamedSlot[], now: readonly NamedSlot[]): SlotChanges {
  const [oldSlots, newSlots] = [numbered(before), numbered(now)];
  const oldNames = new Map(oldSlots.map((slot) => [slot.name, slot]));
  const newNames = new Map(newSlots.map((slot) => [slot.name, slot]));
  const kept = oldSlots.flatMap((slot): Kept[] => {
    const later = newNames.get(slot.name);
    return later === undefined ? [] : [{ name: slot.name, before: slot, now: later }];
  });
  const replaced = replacements(oldSlots, newSlots);
  const [left, taken] = [
    new Set(replaced.map(({ before }) => before)),
    new Set(replaced.map(({ now }) => now)),
  ];
  const gone = oldSlots.filter((slot) => !newNames.has(slot.name) && !left.has(slot));
  const added = newSlots.filter((slot) => !oldNames.has(slot.name) && !taken.has(slot));
  const renumbered = kept.filter((slot) => slot.before.number !== slot.now.number);
  return {
    added: added.map(nameOf),
    gone: gone.map(nameOf),
    replaced: replaced.map(({ before, now }) => ({
      slot: before.number,
      before: before.name,
      now: now.name,
    })),
    removed: kept.filter((slot) => !slot.before.removed && slot.now.removed).map(nameOf),
    restored: kept.filter((slot) => slot.before.removed && !slot.now.removed).map(nameOf),
    reweighted: kept.filter((slot) => slot.before.weight !== slot.now.weight).map(nameOf),
    renumbered: renumbered.map((slot) => ({
      name: slot.name,
      before: slot.before.number,
      now: slot.now.number,
    })),
    remedy: renumbered.length === 0 ? NO_REMEDY : remedyFor([...kept, ...replaced], gone, added),
  };
}

/** A slot that is gone, and the new one in its place. */
interface Replacement {
  readonly before: NumberedSlot;
  readonly now: NumberedSlot;
}

/**
 * The first that is gone behind an upstream that is left, and the first that is new behind it, and so on. Numbers do not tell:
 * those behind one that is gone have others.
 */
function replacements(oldSlots: readonly NumberedSlot[], newSlots: readonly NumberedSlot[]): Replacement[] {
  const [gone, added] = [notIn(newSlots, oldSlots), notIn(oldSlots, newSlots)];
  return [...gone].flatMap(([behind, slots]) => {
    const others = added.get(behind) ?? [];
    return slots.flatMap((before, index): Replacement[] => {
      const now = others[index];
      return now === undefined ? [] : [{ before, now }];
    });
  });
}

/** Slots whose names another list does not have, by the name before them that it has; null at the top. */
function notIn(
  others: readonly NumberedSlot[],
  slots: readonly NumberedSlot[],
): Map<string | null, NumberedSlot[]> {
  const names = new Set(others.map(nameOf));
  const found = new Map<string | null, NumberedSlot[]>();
  let behind: string | null = null;
  for (const slot of slots) {
    if (names.has(slot.name)) behind = slot.name;
    else found.set(behind, [...(found.get(behind) ?? []), slot]);
  }
  return found;
}

const NO_REMEDY: Remedy = { tombstones: [], toEnd: [], order: [] };

/**
 * Everything that is left keeps its number when what is gone before it stays as a tombstone, and what is new comes behind it.
 *
 * @param lasting slots that are left, and that have the place of one that is gone
 */
function remedyFor(
  lasting: readonly Replacement[],
  gone: readonly NumberedSlot[],
  added: readonly NumberedSlot[],
): Remedy {
  const inOrder = lasting.toSorted((one, other) => one.before.number - other.before.number);
  const lastBefore = inOrder.at(-1)?.before.number ?? -1;
  const lastNow = Math.max(-1, ...lasting.map(({ now }) => now.number));
  const isInOrder = inOrder.every(({ now }, index) => now.number > (inOrder[index - 1]?.now.number ?? -1));
  return {
    tombstones: gone
      .filter(({ number }) => number < lastBefore)
      .map(({ number, name }) => ({ slot: number, name })),
    toEnd: added.filter(({ number }) => number < lastNow).map(nameOf),
    order: isInOrder ? [] : inOrder.map(({ now }) => now.name),
  };
}

function numbered(slots: readonly NamedSlot[]): NumberedSlot[] {
  return slots.map(({ name, removed, weight }, number) => {
    return { number, name, removed: removed === true, weight: weight ?? 1 };
  });
}

function nameOf({ name }: { readonly name: string }): string {
  return name;
}

/**
 * The share of keys that have another upstream now, by name: of the first tasks where the task is the key, else of keys as
 * label sets have them. With replicas it is the share of their copies that are at an upstream which had none of that key: in
 * which order a key has its upstreams does not matter.
 *
 * @returns 0 to 1, or null where the keys themselves are others than before, or are made otherwise
 */
export function movedShare(before: RoutePlacement, now: RoutePlacement): number | null {
  if (!haveSameKeys(before, now)) return null;
  // The usual case, in which nothing has to be built.
  if (isPlacedAlike(before, now)) return 0;
  const namesNow = namesPicker(now);
  const namesBefore = namesPicker(before);
  const byTask = now.placement.key.kind === "task" ? (now.tasks?.count ?? 1) : null;
  const count = Math.min(byTask ?? KEYS_PLACED, KEYS_PLACED);
  let moved = 0;
  for (let number = 0; number < count; number++) {
    const key = byTask === null ? Math.imul(number, STEP) : number;
    const had = namesBefore(key);
    for (const name of namesNow(key)) if (!had.includes(name)) moved += 1;
  }
  return moved / (count * now.placement.replicas);
}

/** Gives a key the names of its upstreams. */
function namesPicker({ placement, upstreams }: RoutePlacement): (key: number) => readonly string[] {
  const { placeReplicas, replicas } = buildPlacement(placement, upstreams, placement.replicas);
  const picked = new Int32Array(replicas);
  return (key) => {
    placeReplicas(key, picked);
    return Array.from(picked, (slot) => upstreams[slot]?.name ?? "");
  };
}

/** Rules do not count: they may change and leave most series as they were. Keys of pairs never hold the task label. */
function haveSameKeys(before: RoutePlacement, now: RoutePlacement): boolean {
  const keysOf = ({ keyFormat, tasks, placement: { key, missingKey } }: RoutePlacement): string =>
    JSON.stringify([keyFormat, key.kind === "task" || keyFormat === "flat" ? tasks : null, key, missingKey]);
  return keysOf(before) === keysOf(now);
}

function isPlacedAlike(before: RoutePlacement, now: RoutePlacement): boolean {
  const placed = ({ placement, upstreams }: RoutePlacement): string =>
    JSON.stringify([placement, numbered(upstreams)]);
  return placed(before) === placed(now);
}
