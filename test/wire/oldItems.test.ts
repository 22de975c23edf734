import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { withoutOldItems } from "../../src/wire/oldItems.ts";
import { decodeReference, type ReferenceSeries } from "../reference/writeRequest.ts";
import {
  doubleField,
  exemplar,
  histogram,
  label,
  sample,
  series,
  tag,
  varint,
  varintField,
} from "./handmade.ts";

const OLDEST = 1_700_000_000_000;
const OLD = OLDEST - 1;

/** What a plain filter of decoded series leaves, and how many items it finds too old. */
function filtered(all: readonly ReferenceSeries[]): { series: ReferenceSeries[]; old: number } {
  let old = 0;
  const isYoung = ({ timestamp }: { timestamp: string }): boolean => {
    if (BigInt(timestamp) >= BigInt(OLDEST)) return true;
    old += 1;
    return false;
  };
  const left = all.flatMap((each) => {
    const before = old;
    const [samples, exemplars, histograms] = [
      each.samples.filter(isYoung),
      each.exemplars.filter(isYoung),
      each.histograms.filter(isYoung),
    ];
    const isGone = old > before && samples.length + exemplars.length + histograms.length === 0;
    return isGone ? [] : [{ ...each, samples, exemplars, histograms }];
  });
  return { series: left, old };
}

function plainOf(...fields: readonly Buffer[]): Uint8Array {
  return new Uint8Array(Buffer.concat(fields));
}

describe("a request without its old items", () => {
  const timestamp = fc.oneof(
    fc.constantFrom(OLDEST, OLD, OLDEST + 1, 0, -1, 1).map(BigInt),
    fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  );
  const item = fc.oneof(
    timestamp.map((at) => sample(at)),
    timestamp.map((at) => exemplar(label("trace", "x"), varintField(3, at))),
    timestamp.map((at) => histogram(varintField(1, 3), varintField(15, at))),
  );
  const other = fc.oneof(
    fc.string({ maxLength: 200 }).map((value) => label("name", value)),
    fc.constantFrom(varintField(9, 7), varintField(200, 1), doubleField(100)),
  );
  const anySeries = fc.array(fc.oneof(item, other), { maxLength: 8 }).map((fields) => series(...fields));

  it("is what a filter of decoded items gives, bit for bit and with its counts", () => {
    fc.assert(
      fc.property(fc.array(anySeries, { maxLength: 6 }), (all) => {
        const plain = plainOf(...all);
        const expected = filtered(decodeReference(plain).series);
        const young = withoutOldItems(plain, OLDEST);
        if (expected.old === 0) {
          expect(young).toBe(null);
          return;
        }
        if (young === null) throw new Error("nothing was left out");
        const count = (items: "samples" | "exemplars" | "histograms"): number =>
          expected.series.reduce((sum, each) => sum + each[items].length, 0);
        expect(decodeReference(young.plain).series).toEqual(expected.series);
        expect(young.series).toBe(expected.series.length);
        expect(young.items).toEqual({
          samples: count("samples"),
          exemplars: count("exemplars"),
          histograms: count("histograms"),
        });
      }),
    );
  });

  it.each([
    { name: "no timestamp", old: nestedSample(doubleField(1)) },
    { name: "the second of two timestamps", old: nestedSample(varintField(2, OLDEST), varintField(2, OLD)) },
    { name: "a negative one", old: sample(-1) },
  ])("leaves out an item with $name", ({ old }) => {
    const young = withoutOldItems(plainOf(series(label("a", "b"), old, sample(OLDEST))), OLDEST);
    expect(Buffer.from(young?.plain ?? [])).toEqual(series(label("a", "b"), sample(OLDEST)));
  });

  it("keeps a timestamp that takes more bytes than it needs", () => {
    const padded = nestedSample(tag(2, 0), varint(OLDEST, 10));
    expect(withoutOldItems(plainOf(series(padded)), OLDEST)).toBe(null);
  });

  it("is small work for a series of very many items", () => {
    const many = Array.from({ length: 200_000 }, (_, index) => sample(index % 2 === 0 ? OLD : OLDEST));
    const young = withoutOldItems(plainOf(series(Buffer.concat(many))), OLDEST);
    expect(young?.items.samples).toBe(100_000);
  });
});

function nestedSample(...fields: readonly Uint8Array[]): Buffer {
  const message = Buffer.concat(fields);
  return Buffer.concat([tag(2, 2), varint(message.length), message]);
}
