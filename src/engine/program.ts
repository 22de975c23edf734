/** The compiled module of assembly/, and what it exports: see assembly/index.ts, which says what each function does. */
import { readFileSync } from "node:fs";

/** Addresses and lengths are numbers of 32 bits; a boolean is 0 or 1. */
export interface EngineProgram {
  readonly memory: WebAssembly.Memory;
  configure(
    destinations: number,
    tallies: number,
    bounds: number,
    tableSeries: number,
    tableBytes: number,
  ): void;
  setBound(index: number, lower: number, upper: number): void;
  setLimits(destination: number, maxItems: number, maxPlainBytes: number): void;
  reportAt(): number;
  hashKeyAt(): number;
  rowsAt(): number;
  metadataAt(): number;
  talliesAt(): number;
  plainAt(): number;
  reservePacked(bytes: number): number;
  uncompress(elementsFrom: number, packedBytes: number, plainBytes: number): number;
  hashPacked(packedBytes: number): number;
  reserveWindow(bytes: number): number;
  scan(maxRows: number, windowBytes: number, requestBytes: number): number;
  lookUp(context: number): number;
  decide(row: number, context: number, destinationBytes: number, keep: boolean): number;
  setOpenParcel(destination: number, items: number, plainBytes: number): void;
  emit(): void;
  reportTable(): void;
  knows(word0: number, word1: number, word2: number, word3: number, context: number): number;
  samplePlace(row: number, saltLow: number, saltHigh: number): number;
  compress(plainBytes: number): void;
}

let compiled: WebAssembly.Module | null = null;

/** A fresh instance with a memory of its own. The module, which `npm run build` makes, is compiled once per process. */
export function instantiate(): EngineProgram {
  compiled ??= new WebAssembly.Module(readFileSync(new URL("engine.wasm", import.meta.url)));
  // With noAssert and no runtime it imports nothing but a way to abort, which it never calls.
  return new WebAssembly.Instance(compiled, { env: { abort: () => undefined } }).exports as EngineProgram;
}
