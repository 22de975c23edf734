import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  encodeLabelField,
  encodeLabelSet,
  labelFieldBytes,
  seriesRequest,
  writeLabelField,
} from "../../src/wire/labelField.ts";
import { decodeReference } from "../reference/writeRequest.ts";
import { label, nested, series, varint } from "./handmade.ts";

describe("an encoded label", () => {
  const parts = fc.oneof(
    fc.uint8Array({ maxLength: 300 }),
    fc.uint8Array({ minLength: 16_300, maxLength: 16_500 }),
  );

  it("decodes to its name and value", () => {
    fc.assert(
      fc.property(parts, parts, (name, value) => {
        const [decoded] = decodeReference(series(encodeLabelField(name, value))).series;
        expect(decoded?.labels).toEqual([[latin1(name), latin1(value)]]);
      }),
      { seed: 1, numRuns: 300 },
    );
  });

  it("is the same when its texts are written to a place among other bytes", () => {
    const texts = fc.oneof(
      fc.string({ unit: "grapheme", maxLength: 200 }),
      fc.constantFrom("", "a".repeat(128), "é".repeat(9_000), "😀".repeat(64)),
    );
    fc.assert(
      fc.property(texts, texts, fc.nat(9), (name, value, at) => {
        const field = encodeLabelField(Buffer.from(name), Buffer.from(value));
        expect(labelFieldBytes(name, value)).toBe(field.length);
        const target = Buffer.alloc(at + field.length);
        const { nameStart, nameEnd, valueStart, end } = writeLabelField(target, at, name, value);
        expect(target.subarray(at, end).equals(field)).toBe(true);
        expect(target.toString("utf8", nameStart, nameEnd)).toBe(name);
        expect(target.toString("utf8", valueStart, end)).toBe(value);
      }),
      { seed: 1, numRuns: 300 },
    );
  });

  it("makes up, with others, a series of labels and nothing else", () => {
    const labels = [
      ["__name__", "up"],
      ["job", ""],
      ["", "x".repeat(200)],
    ] as const;
    const plain = encodeLabelSet(labels.flat().map((text) => Buffer.from(text)));
    expect(decodeReference(plain)).toEqual({
      series: [{ labels, samples: [], exemplars: [], histograms: [] }],
      metadata: [],
    });
    expect(decodeReference(encodeLabelSet([])).series).toHaveLength(1);
  });
});

function latin1(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("latin1");
}

describe("a request of one series", () => {
  const borders = [2 ** 7, 2 ** 14, 2 ** 21].flatMap((border) => [border - 1, border]);

  it.each([0, ...borders])("has a length in front that counts %i bytes", (bytes) => {
    const message = new Uint8Array(bytes);
    const request = seriesRequest(message);
    expect(Buffer.from(request).equals(nested(1, message))).toBe(true);
    expect(request).toHaveLength(1 + varint(bytes).length + bytes);
  });

  it("is what its fields make it", () => {
    const field = label("a", "1");
    expect(Buffer.from(seriesRequest(field)).toString("hex")).toBe(series(field).toString("hex"));
  });
});
