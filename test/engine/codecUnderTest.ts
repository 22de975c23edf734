/** The engine's snappy codec by itself, called so that what it reads or writes out of bounds traps, shows or throws. */
import { compileAssembly } from "./compileAssembly.ts";

interface Codec {
  readonly memory: WebAssembly.Memory;
  decodeElements(from: number, fromEnd: number, to: number, plainBytes: number): number;
  maxEncodedBytes(plainBytes: number): number;
  encodeElements(from: number, fromEnd: number, to: number, table: number): number;
}

/** Bytes behind a range that the codec may read or write. */
const OVERRUN = 15;
const PAGES = 128;
// Addresses behind the module's static data. The input ends where to read a byte more than the overrun would trap.
const TABLE = 1 << 20;
const TABLE_BYTES = 16 * 1024;
const OUTPUT = 2 << 20;
const INPUT_END = PAGES * 64 * 1024 - OVERRUN;
/** Bytes around a range that are looked at for what should not be written there. */
const GUARD = Buffer.alloc(64, 0xa5);

const codec = compileAssembly(
  ["snappyDecode.ts", "snappyEncode.ts"],
  ["--initialMemory", String(PAGES)],
) as Codec;
const memory = Buffer.from(codec.memory.buffer);

/**
 * Decodes elements.
 *
 * @param behind what the bytes behind the input are
 * @returns the plain bytes, or null for elements that are not valid
 */
export function decode(elements: Uint8Array, plainBytes: number, behind = 0): Uint8Array | null {
  const from = placeInput(elements, behind);
  const isValid = guarded(OUTPUT, plainBytes, () =>
    codec.decodeElements(from, INPUT_END, OUTPUT, plainBytes),
  );
  return isValid === 0 ? null : Uint8Array.from(memory.subarray(OUTPUT, OUTPUT + plainBytes));
}

/** Encodes to elements, with what is given as `behind` in the scratch as well. */
export function encode(plain: Uint8Array, behind = 0): Uint8Array {
  const from = placeInput(plain, behind);
  memory.fill(behind, TABLE, TABLE + TABLE_BYTES);
  const bound = codec.maxEncodedBytes(plain.length);
  const run = (): number => codec.encodeElements(from, INPUT_END, OUTPUT, TABLE);
  // The table may not be overrun.
  const end = guarded(TABLE, TABLE_BYTES - OVERRUN, () => guarded(OUTPUT, bound, run));
  if (end - OUTPUT > bound) throw new Error(`encoded to ${end - OUTPUT} bytes, the bound is ${bound}`);
  return Uint8Array.from(memory.subarray(OUTPUT, end));
}

function placeInput(bytes: Uint8Array, behind: number): number {
  memory.set(bytes, INPUT_END - bytes.length);
  memory.fill(behind, INPUT_END);
  return INPUT_END - bytes.length;
}

/** Runs what writes `bytes` bytes at most from `start` on, and throws when it wrote elsewhere. */
function guarded(start: number, bytes: number, run: () => number): number {
  const before = start - GUARD.length;
  const after = start + bytes + OVERRUN;
  memory.set(GUARD, before);
  memory.set(GUARD, after);
  const answer = run();
  for (const at of [before, after]) {
    if (GUARD.compare(memory, at, at + GUARD.length) !== 0) throw new Error("it wrote out of bounds");
  }
  return answer;
}
