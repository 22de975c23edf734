import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  editedBytes,
  encodeLabelField,
  encodeLabelSet,
  type LabelEdit,
  PlainRequest,
  seriesFieldBytes,
} from "../../src/wire/emit.ts";
import { scanRequest } from "../../src/wire/scan.ts";
import { decodeReference } from "../reference/writeRequest.ts";
import {
  exemplar,
  histogram,
  label,
  metadata,
  nested,
  sample,
  series,
  varint,
  varintField,
} from "./handmade.ts";
import { plainRequests } from "./plainRequests.ts";
import { scanOfOne } from "./scanned.ts";

/** Writes a series alone. */
function emitted(plain: Uint8Array, edit: LabelEdit | null): Buffer {
  const request = new PlainRequest();
  request.appendSeries(scanOfOne(plain), edit);
  return Buffer.from(request.view());
}

const fields = fc.oneof(
  fc
    .tuple(fc.string({ maxLength: 40 }), fc.string({ maxLength: 40 }))
    .map(([name, value]) => label(name, value)),
  fc
    .bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })
    .map((timestamp) => sample(timestamp, "7ff0000000000002")),
  fc.constantFrom(
    exemplar(label("trace", "1")),
    histogram(varintField(1, 5)),
    varintField(20, 300),
    nested(21, "x"),
  ),
);

describe("a series with a label put in and a field taken out", () => {
  it("is the sender's other fields in their order, at every border and with every field left out", () => {
    fc.assert(
      fc.property(fc.array(fields, { maxLength: 6 }), fc.string({ maxLength: 200 }), (before, value) => {
        const inserted = encodeLabelField(Buffer.from("task"), Buffer.from(value));
        const plain = series(...before);
        const start = plain.length - Buffer.concat(before).length;
        const startOf = (field: number): number => start + Buffer.concat(before.slice(0, field)).length;
        for (let border = 0; border <= before.length; border++) {
          for (let cut = -1; cut < before.length; cut++) {
            const insertAt = startOf(border);
            const edit: LabelEdit = {
              label: inserted,
              insertAt,
              cutStart: cut < 0 ? insertAt : startOf(cut),
              cutEnd: cut < 0 ? insertAt : startOf(cut + 1),
            };
            const after = [
              ...before.slice(0, border).filter((_, index) => index !== cut),
              inserted,
              ...before.slice(border).filter((_, index) => index + border !== cut),
            ];
            const message = Buffer.concat(after);
            expect(emitted(plain, edit).toString("hex")).toBe(series(message).toString("hex"));
            expect(editedBytes(scanOfOne(plain), edit)).toBe(message.length);
          }
        }
      }),
      { seed: 1, numRuns: 150 },
    );
  });

  it("is what it was without an edit", () => {
    fc.assert(
      fc.property(fc.array(fields, { maxLength: 20 }), (content) => {
        const plain = series(...content);
        expect(emitted(plain, null).toString("hex")).toBe(plain.toString("hex"));
      }),
      { seed: 1, numRuns: 300 },
    );
  });
});

/** A field of exactly `bytes` bytes. */
function filler(bytes: number): Buffer {
  const lengthBytes = varint(bytes - 4).length;
  const field = nested(20, new Uint8Array(bytes - 2 - lengthBytes));
  expect(field).toHaveLength(bytes);
  return field;
}

describe("the length in front of a series", () => {
  const borders = [2 ** 7, 2 ** 14, 2 ** 21].flatMap((border) => [border - 1, border]);

  it.each([0, 1, ...borders, 2 ** 28 - 1, 2 ** 28])("counts as many bytes as %i needs", (messageBytes) => {
    expect(seriesFieldBytes(messageBytes)).toBe(1 + varint(messageBytes).length + messageBytes);
  });

  it.each(borders)("is written in as many bytes as %i needs", (messageBytes) => {
    const plain = series(filler(messageBytes));
    expect(emitted(plain, null).equals(plain)).toBe(true);
  });

  it.each(borders)(
    "is that of the series with its label when the two are %i bytes together",
    (messageBytes) => {
      const inserted = encodeLabelField(Buffer.from("task"), Buffer.from("7"));
      const rest = filler(messageBytes - inserted.length);
      const plain = series(rest);
      const insertAt = plain.length - rest.length;
      const edit = { label: inserted, insertAt, cutStart: insertAt, cutEnd: insertAt };
      expect(emitted(plain, edit).equals(series(inserted, rest))).toBe(true);
    },
  );
});

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

describe("a request under construction", () => {
  it.each(plainRequests())("is $name again when each of its parts is added as it is", ({ plain }) => {
    const request = new PlainRequest();
    scanRequest(plain, 256, {
      series: (found) => {
        request.appendSeries(found, null);
      },
      metadata: (start, end) => {
        request.appendField(plain, start, end);
      },
    });
    expect(request).toHaveLength(plain.length);
    expect(Buffer.from(request.view()).equals(plain)).toBe(true);
  });

  it("starts anew after clear()", () => {
    const request = new PlainRequest();
    const [first, second] = [metadata(nested(2, "first")), metadata(nested(2, "2nd"))];
    request.appendField(first, 0, first.length);
    request.clear();
    expect(request).toHaveLength(0);
    request.appendField(second, 0, second.length);
    expect(Buffer.from(request.view()).equals(second)).toBe(true);
  });
});
