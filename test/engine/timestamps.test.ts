/** The newest timestamp of a step, against timestamps that the test wrote into the request. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Engine, MAX_STEP_SERIES } from "../../src/engine/engine.ts";
import { field, label, series } from "../reference/build.ts";

const engine = new Engine({
  destinations: [{ maxItems: 10_000, maxPlainBytes: 1 << 20 }],
  tallies: 1,
  bounds: [],
  tableSeries: 100,
  tableBytes: 1 << 20,
  hashKey: new Uint8Array(32).fill(9),
});

const VALUE = Buffer.from([(1 << 3) | 1, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]);
/** Item fields of a series, and where in their messages the timestamp is. */
const ITEMS = [
  { name: "sample", number: 2, tag: 2 << 3, before: VALUE },
  { name: "sample without its value, which is 0", number: 2, tag: 2 << 3, before: Buffer.alloc(0) },
  { name: "exemplar", number: 3, tag: 3 << 3, before: Buffer.alloc(0) },
  { name: "histogram", number: 4, tag: 15 << 3, before: Buffer.from([1 << 3, 5]) },
] as const;
type Item = (typeof ITEMS)[number];

function varint64(value: bigint): Buffer {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, value);
  for (; rest >= 0x80n; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80);
  return Buffer.from([...bytes, Number(rest)]);
}

function itemAt({ number, tag, before }: Item, timestamp: bigint): Buffer {
  return field(number, Buffer.concat([before, Buffer.from([tag]), varint64(timestamp)]));
}

function newestOf(...plains: readonly Uint8Array[]): number | undefined {
  const plain = Buffer.concat(plains);
  engine.setWindow(plain);
  return engine.scan(MAX_STEP_SERIES, plain.length, plain.length, 0)?.newestTimestampMs;
}

function exact(timestamp: bigint): number {
  return Math.min(Math.max(Number(timestamp), Number.MIN_SAFE_INTEGER), Number.MAX_SAFE_INTEGER);
}

describe("the newest timestamp of a step", () => {
  it.each(ITEMS)("is that of a $name, whatever its length", (item) => {
    for (let bits = 0n; bits <= 63n; bits++) {
      for (const timestamp of [1n << bits, (1n << bits) - 1n, -(1n << bits)]) {
        const inRange = BigInt.asIntN(64, timestamp);
        expect(newestOf(series(label("a", "1"), itemAt(item, inRange)))).toBe(exact(inRange));
      }
    }
  });

  it("is the greatest of all items of all series", () => {
    const item = fc.record({
      kind: fc.constantFrom(...ITEMS),
      timestamp: fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n),
    });
    const request = fc.array(fc.array(item, { minLength: 1, maxLength: 5 }), { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(request, (all) => {
        const plains = all.map((items, index) =>
          series(label("n", String(index)), ...items.map(({ kind, timestamp }) => itemAt(kind, timestamp))),
        );
        const timestamps = all.flat().map(({ timestamp }) => exact(timestamp));
        expect(newestOf(...plains)).toBe(Math.max(...timestamps));
      }),
      { numRuns: 500 },
    );
  });

  it("is 0 where the newest item leaves it out, as 0 is left out", () => {
    expect(newestOf(series(label("a", "1"), itemAt(ITEMS[0], -5n), field(2, VALUE)))).toBe(0);
  });

  it("is none, the smallest number, without items, and is not that of the step before", () => {
    newestOf(series(label("a", "1"), itemAt(ITEMS[0], 5n)));
    expect(newestOf(series(label("a", "1")))).toBe(Number.MIN_SAFE_INTEGER);
  });
});
