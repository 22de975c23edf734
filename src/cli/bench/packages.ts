/**
 * npm packages for the same algorithms, beside which ours are measured where they are installed: they are development
 * dependencies, which the installed product is without.
 */
import { createRequire } from "node:module";
import { mix32 } from "../../hash/mix.ts";
import { namedSlots } from "./methods.ts";

/** A function of a package that looks keys up. */
export interface PackagedLookup {
  /** As the table names it. */
  readonly name: string;
  readonly packageName: string;
  /** Which of METHODS it is to be compared with, by its name. */
  readonly method: string;
  /** Then it has other answers than ours, which are given hashes. */
  readonly hashesKeys: boolean;
  /**
   * Builds what is looked up in.
   *
   * @param library what the package exports
   * @param slots how many slots, named as namedSlots does
   */
  readonly build: (library: unknown, slots: number) => BuiltLookup;
}

interface BuiltLookup {
  /**
   * Makes what the package takes for a key of each hash, so that it takes no time later.
   *
   * @returns looks up the key of the hash at an index
   */
  readonly prepare: (hashes: Uint32Array) => (index: number) => number;
  /** The slot that an answer means; whatever it likes where the package hashes keys itself. */
  readonly slotOf: (answer: number) => number;
}

interface JumpGouache {
  readonly jump: (key: number, buckets: number) => number;
}

interface SubspaceJump {
  /** @param key 64 bits, big-endian */
  readonly jumpConsistentHash: (key: Uint8Array, buckets: number) => number;
}

interface HashRing {
  readonly ring: readonly { readonly server: string }[];
  get(key: string): string | undefined;
  /** @returns index in `ring` of the point that follows */
  find(position: number): number;
}
type HashRingClass = new (
  servers: readonly string[],
  algorithm: string,
  options: { readonly "vnode count": number },
) => HashRing;

/** Each gives four of the 160 points. */
const DIGESTS_PER_SLOT = 40;
const NO_SLOT = -1;
const RING_METHOD = "ring md5, 160 points";

export const PACKAGED_LOOKUPS: readonly PackagedLookup[] = [
  {
    name: "jump",
    packageName: "jump-gouache",
    method: "jump",
    hashesKeys: false,
    build: (library, slots) => {
      const { jump } = library as JumpGouache;
      return { prepare: (hashes) => (index) => jump(hashes[index] ?? 0, slots), slotOf: (slot) => slot };
    },
  },
  {
    name: "jumpConsistentHash",
    packageName: "@subspace/jump-consistent-hash",
    method: "jump",
    hashesKeys: false,
    build: (library, slots) => {
      const { jumpConsistentHash } = library as SubspaceJump;
      const none = new Uint8Array(8);
      const prepare: BuiltLookup["prepare"] = (hashes) => {
        const keys = Array.from(hashes, bigEndian64);
        return (index) => jumpConsistentHash(keys[index] ?? none, slots);
      };
      return { prepare, slotOf: (slot) => slot };
    },
  },
  {
    name: "find of a position",
    packageName: "hashring",
    method: RING_METHOD,
    hashesKeys: false,
    build: (library, slots) => {
      const hashRing = ringOf(library, slots);
      const numbers = new Map(namedSlots(slots).map(({ name }, number) => [name, number]));
      const prepare: BuiltLookup["prepare"] = (hashes) => {
        const positions = Uint32Array.from(hashes, mix32);
        return (index) => hashRing.find(positions[index] ?? 0);
      };
      return { prepare, slotOf: (answer) => numbers.get(hashRing.ring[answer]?.server ?? "") ?? NO_SLOT };
    },
  },
  {
    name: "get of a text",
    packageName: "hashring",
    method: RING_METHOD,
    hashesKeys: true,
    build: (library, slots) => {
      const hashRing = ringOf(library, slots);
      const prepare: BuiltLookup["prepare"] = (hashes) => {
        const keys = Array.from(hashes, String);
        return (index) => hashRing.get(keys[index] ?? "")?.length ?? NO_SLOT;
      };
      return { prepare, slotOf: (length) => length };
    },
  },
];

/** The version of a package that is installed, or null. */
export function installedVersion(packageName: string): string | null {
  try {
    const manifest: unknown = createRequire(import.meta.url)(`${packageName}/package.json`);
    return (manifest as { readonly version: string }).version;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "MODULE_NOT_FOUND") return null;
    throw error;
  }
}

/** What an installed package exports. */
export function loadPackage(packageName: string): unknown {
  return createRequire(import.meta.url)(packageName);
}

function ringOf(library: unknown, slots: number): HashRing {
  const names = namedSlots(slots).map(({ name }) => name);
  return new (library as HashRingClass)(names, "md5", { "vnode count": DIGESTS_PER_SLOT });
}

function bigEndian64(value: number): Uint8Array {
  const bytes = Buffer.alloc(8);
  bytes.writeUInt32BE(value, 4);
  return bytes;
}
