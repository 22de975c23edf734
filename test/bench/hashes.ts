/** The hash functions of src/hash beside the same in C: nanoseconds per key. */
import { spawnSync } from "node:child_process";
import { markdownTable } from "../../src/cli/bench/markdownTable.ts";
import { FNV_OFFSET_BASIS, fnv1a32 } from "../../src/hash/fnv.ts";
import { jump } from "../../src/hash/jump.ts";
import type { Tools } from "./tools.ts";

/** More than a branch predictor can learn by heart. */
const JUMP_KEYS = 20_000;
const BUCKETS = 100;
const FNV_KEYS = 1_000;
/** A key's bytes as in the corpus, hashed in pieces as names and values are. */
const BYTES_PER_KEY = 288;
const BYTES_PER_PIECE = 12;
/** The machine disturbs some rounds: the shortest of all counts. */
const ROUNDS = 200;
const TURNS = 5;

const TARGETS = { jump: 1.5, fnv: 1.3 } as const;

/** Times per key, and a checksum over all answers. */
interface HashTimes {
  readonly jumpNs: number;
  readonly jumpSum: number;
  readonly fnvNs: number;
  readonly fnvSum: number;
}

/** @throws {Error} when the answers differ from those in C */
export function hashTable(tools: Tools): string {
  const ours: HashTimes[] = [];
  const native: HashTimes[] = [];
  for (let turn = 0; turn < TURNS; turn++) {
    native.push(timeNative(tools));
    ours.push(timeOurs());
  }
  const sums = new Set([...ours, ...native].map(({ jumpSum, fnvSum }) => `${jumpSum} ${fnvSum}`));
  if (sums.size !== 1) throw new Error("jump or FNV-1a gives other answers than in C");

  const row = (what: string, target: number, pick: (times: HashTimes) => number): string[] => {
    const nanoseconds = Math.min(...ours.map(pick));
    const inC = Math.min(...native.map(pick));
    const ratio = nanoseconds / inC;
    const verdict = ratio <= target ? "reached" : "missed";
    return [
      what,
      nanoseconds.toFixed(1),
      inC.toFixed(1),
      ratio.toFixed(2),
      `${target.toFixed(1)}, ${verdict}`,
    ];
  };
  return `### Hashes, ns per key\n\n${markdownTable(
    ["", "ours", "C, -O2", "ratio", "target"],
    [
      row(`jump, ${BUCKETS} buckets`, TARGETS.jump, ({ jumpNs }) => jumpNs),
      row(
        `FNV-1a 32, ${BYTES_PER_KEY} bytes in pieces of ${BYTES_PER_PIECE}`,
        TARGETS.fnv,
        ({ fnvNs }) => fnvNs,
      ),
    ],
  )}`;
}

function timeNative({ hashes }: Tools): HashTimes {
  const args = [JUMP_KEYS, BUCKETS, FNV_KEYS, BYTES_PER_KEY, BYTES_PER_PIECE, ROUNDS].map(String);
  const { stdout, status } = spawnSync(hashes, args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`${hashes} has failed`);
  return JSON.parse(stdout) as HashTimes;
}

function timeOurs(): HashTimes {
  const next = sequence();
  const keys = Uint32Array.from({ length: JUMP_KEYS }, next);
  const bytes = Uint8Array.from({ length: FNV_KEYS * BYTES_PER_KEY }, () => next() >>> 24);
  const jumps = shortest(() => jumpAll(keys));
  const hashes = shortest(() => hashAll(bytes));
  return {
    jumpNs: jumps.nanoseconds / JUMP_KEYS,
    jumpSum: jumps.sum,
    fnvNs: hashes.nanoseconds / FNV_KEYS,
    fnvSum: hashes.sum,
  };
}

/** The numbers that hashes.c makes its keys of. */
function sequence(): () => number {
  let state = 1;
  return () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0);
}

function shortest(work: () => number): { readonly nanoseconds: number; readonly sum: number } {
  let nanoseconds = Infinity;
  let sum = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const began = process.hrtime.bigint();
    sum = work();
    nanoseconds = Math.min(nanoseconds, Number(process.hrtime.bigint() - began));
  }
  return { nanoseconds, sum };
}

function jumpAll(keys: Uint32Array): number {
  let sum = 0;
  for (let i = 0; i < JUMP_KEYS; i++) sum = (sum + jump(keys[i] ?? 0, BUCKETS)) >>> 0;
  return sum;
}

function hashAll(bytes: Uint8Array): number {
  let sum = 0;
  for (let key = 0; key < bytes.length; key += BYTES_PER_KEY) {
    // >>> 0 tells the compiler that it is an integer; of an import it knows that only later.
    let hash = FNV_OFFSET_BASIS >>> 0;
    for (let at = key; at < key + BYTES_PER_KEY; at += BYTES_PER_PIECE) {
      hash = fnv1a32(bytes, at, at + BYTES_PER_PIECE, hash);
    }
    sum = (sum + hash) >>> 0;
  }
  return sum;
}
