/**
 * Maglev hashing: a table of prime size that the slots fill in turns, each by an order of its own; a key's remainder by
 * the size finds the slot.
 *
 * Lookups take one step and the table is even to one entry in a turn. Taking a slot away moves its keys and, of the others,
 * a few: the fewer the larger the table is.
 *
 * @see Eisenbud et al.: Maglev: A Fast and Reliable Software Network Load Balancer, NSDI 2016
 */
import { PlacementError } from "./errors.ts";
import { mix32 } from "./mix.ts";
import { type NamedSlot, type PlaceKey, weightOf } from "./slots.ts";
import { xxhash64 } from "./xxhash64.ts";

/** Fewer entries a slot would make it uneven, and would move more than has to move. */
const MIN_ENTRIES_PER_SLOT = 100;
/** As in Envoy. With MIN_ENTRIES_PER_SLOT it keeps slots within 16 bits. */
const MAX_TABLE = 5_000_011;
const EMPTY = 0xffff;

/**
 * Builds the lookup over a table of `size` entries.
 *
 * @throws {PlacementError} PLACEMENT_TABLE
 */
export function buildMaglev(slots: readonly NamedSlot[], size: number): PlaceKey {
  checkSize(size, slots.length);
  const table = maglevTable(slots, size);
  // A constant of this function: what is imported is checked in every lookup, which shows in one of so few steps.
  const mix = mix32;
  return (key) => table[(mix(key) >>> 0) % size] ?? 0;
}

/**
 * Fills a table as Envoy does: offset and skip of a slot's order are XXH64 of its name, with the seeds 0 and 1; turns go by
 * the list; a slot of the highest weight takes an entry in every turn, one of half that weight in every second.
 *
 * @param size a prime
 * @returns slot numbers
 * @see https://github.com/envoyproxy/envoy, source/extensions/load_balancing_policies/maglev/maglev_lb.cc
 */
export function maglevTable(slots: readonly NamedSlot[], size: number): Uint16Array {
  const table = new Uint16Array(size).fill(EMPTY);
  const names = slots.map(({ name }) => Buffer.from(name));
  const next = Int32Array.from(names, (name) => Number(xxhash64(name, 0n) % BigInt(size)));
  const skips = Int32Array.from(names, (name) => Number(xxhash64(name, 1n) % BigInt(size - 1)) + 1);
  const weights = Float64Array.from(slots, weightOf);
  const heaviest = weights.reduce((most, weight) => Math.max(most, weight), 0);
  /** What turn * weight must have reached for the slot to take another entry. */
  const due = new Float64Array(slots.length);
  let filled = 0;
  for (let turn = 1; filled < size; turn++) {
    for (let slot = 0; slot < slots.length && filled < size; slot++) {
      if (turn * (weights[slot] ?? 0) < (due[slot] ?? 0)) continue;
      due[slot] = (due[slot] ?? 0) + heaviest;
      const skip = skips[slot] ?? 0;
      let entry = next[slot] ?? 0;
      while (table[entry] !== EMPTY) entry = (entry + skip) % size;
      table[entry] = slot;
      next[slot] = (entry + skip) % size;
      filled += 1;
    }
  }
  return table;
}

function checkSize(size: number, slots: number): void {
  const least = MIN_ENTRIES_PER_SLOT * slots;
  if (Number.isInteger(size) && size >= least && size <= MAX_TABLE && isPrime(size)) return;
  throw new PlacementError(
    "PLACEMENT_TABLE",
    null,
    `a Maglev table of ${size} entries: want a prime from ${least} (${MIN_ENTRIES_PER_SLOT} for each of ${slots} slots) ` +
      `to ${MAX_TABLE}${nextPrimeHint(Math.max(size, least))}`,
  );
}

function nextPrimeHint(from: number): string {
  for (let size = Math.ceil(from); size <= MAX_TABLE; size++) {
    if (isPrime(size)) return `, ${size} say`;
  }
  return "";
}

function isPrime(size: number): boolean {
  if (size < 2) return false;
  for (let divisor = 2; divisor * divisor <= size; divisor++) {
    if (size % divisor === 0) return false;
  }
  return true;
}
