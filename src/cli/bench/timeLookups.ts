/**
 * A process that times one lookup function and prints TimedLookups as JSON:
 *
 *   node --expose-gc timeLookups.js SUBJECT SLOTS KEYS WARM_UP_MS MEASURED_MS
 *
 * One function in each process: after several, the compiler would no longer take the call in the loop for a call of this one.
 * native/placement.c does the same in C.
 */
import { invariant } from "../../hash/invariant.ts";
import { buildPlacement, type PlacementMethod } from "../../hash/placement.ts";
import type { PlaceKey } from "../../hash/slots.ts";
import { hashedKey, keysToLookUp } from "./keys.ts";
import { namedSlots } from "./methods.ts";
import { loadPackage, PACKAGED_LOOKUPS } from "./packages.ts";

/** A placement of ours, or one of PACKAGED_LOOKUPS by its index. */
export type TimedSubject =
  | { readonly kind: "ours"; readonly method: PlacementMethod }
  | { readonly kind: "packaged"; readonly index: number };

export interface TimedLookups {
  /** To build it for the first time in its process. */
  readonly buildMs: number;
  /** Of its tables. */
  readonly bytes: number;
  /** Per key, undisturbed: what else the machine does makes a pass over the keys longer, never shorter. */
  readonly lookupNs: number;
  /** Over all answers in their order. */
  readonly checksum: number;
}

/** Few, so that some passes over them run undisturbed on a machine that does other things. As in placement.c. */
const KEYS_PER_PIECE = 4000;

interface Lookup {
  readonly place: PlaceKey;
  /** What an answer means. */
  readonly slotOf: (answer: number) => number;
}

/** What tableBytes has built stays until the end. */
const kept: unknown[] = [];

function main([subjectText = "", ...numbers]: readonly string[]): TimedLookups {
  const [slots = 0, keyCount = 0, warmUpMs = 0, measuredMs = 0] = numbers.map(Number);
  const subject = JSON.parse(subjectText) as TimedSubject;
  if (subject.kind === "ours") {
    const { method } = subject;
    const build = (): Lookup => ({ ...buildPlacement(method, namedSlots(slots)), slotOf: (slot) => slot });
    return time(build, (built) => built, keysToLookUp(method, keyCount), warmUpMs, measuredMs);
  }
  const packaged = PACKAGED_LOOKUPS[subject.index];
  invariant(packaged !== undefined, "a package that is not in the list");
  const library = loadPackage(packaged.packageName);
  const hashes = Uint32Array.from({ length: keyCount }, (_, index) => hashedKey(index));
  const indexes = Uint32Array.from(hashes.keys());
  return time(
    () => packaged.build(library, slots),
    ({ prepare, slotOf }) => ({ place: prepare(hashes), slotOf }),
    indexes,
    warmUpMs,
    measuredMs,
  );
}

function time<Built>(
  build: () => Built,
  lookupIn: (built: Built) => Lookup,
  keys: Uint32Array,
  warmUpMs: number,
  measuredMs: number,
): TimedLookups {
  const start = performance.now();
  const built = build();
  const buildMs = performance.now() - start;
  const bytes = tableBytes(build);
  const { place, slotOf } = lookupIn(built);
  const checksum = checksumOf(place, keys, slotOf);
  shortestMs(place, keys, warmUpMs);
  const lookupNs = (shortestMs(place, keys, measuredMs) / keys.length) * 1e6;
  return { buildMs, bytes, lookupNs, checksum };
}

/** What stays of another one: all tables are typed arrays, and what little is around them does not count. */
function tableBytes(build: () => unknown): number {
  const before = bytesInArrays();
  kept.push(build());
  return bytesInArrays() - before;
}

function bytesInArrays(): number {
  invariant(global.gc !== undefined, "node without --expose-gc");
  global.gc();
  // What one collection frees is counted by the time of the next.
  global.gc();
  return process.memoryUsage().arrayBuffers;
}

function checksumOf(place: PlaceKey, keys: Uint32Array, slotOf: (answer: number) => number): number {
  let checksum = 0;
  for (const key of keys) checksum = (Math.imul(checksum, 31) + slotOf(place(key))) >>> 0;
  return checksum;
}

/** Places all keys again and again for so long; answers what all pieces of them take together, each at its shortest. */
function shortestMs(place: PlaceKey, keys: Uint32Array, forMs: number): number {
  const pieces: Uint32Array[] = [];
  for (let at = 0; at < keys.length; at += KEYS_PER_PIECE)
    pieces.push(keys.subarray(at, at + KEYS_PER_PIECE));
  const sums: number[] = [];
  const shortest = pieces.map(() => Infinity);
  const began = performance.now();
  do {
    for (const [index, piece] of pieces.entries()) {
      const start = performance.now();
      const sum = placeAll(place, piece);
      shortest[index] = Math.min(shortest[index] ?? Infinity, performance.now() - start);
      // Answers that nobody looked at might not be worked out at all.
      invariant(sum === (sums[index] ??= sum), "other answers in another pass");
    }
  } while (performance.now() - began < forMs);
  return shortest.reduce((sum, ms) => sum + ms, 0);
}

function placeAll(place: PlaceKey, keys: Uint32Array): number {
  let sum = 0;
  for (let i = 0; i < keys.length; i++) sum = (sum + place(keys[i] ?? 0)) | 0;
  return sum;
}

process.stdout.write(`${JSON.stringify(main(process.argv.slice(2)))}\n`);
