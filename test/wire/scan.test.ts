import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { scanRequest } from "../../src/wire/scan.ts";
import { decodeReference, uncompressBody } from "../reference/writeRequest.ts";
import {
  doubleField,
  END_GROUP,
  exemplar,
  fixed32Field,
  FIXED32,
  FIXED64,
  histogram,
  label,
  LENGTH_DELIMITED,
  metadata,
  nested,
  sample,
  series,
  seriesOf,
  START_GROUP,
  tag,
  VARINT,
  varint,
  varintField,
} from "./handmade.ts";
import { cutToFields, plainRequests, topLevelEnds } from "./plainRequests.ts";
import { scanned } from "./scanned.ts";
import { wireErrorOf } from "./wireErrorOf.ts";

const REQUESTS = plainRequests();
const IGNORE = { series: () => undefined, metadata: () => undefined };

/** What the scanner tells of a request, from what the reference decoded. */
function expectedOf(plain: Uint8Array): object {
  const reference = decodeReference(plain);
  return {
    series: reference.series.map(({ labels, samples, histograms, exemplars }) => ({
      labels: labels.map(([name, value]) => [name, value]),
      labelsFound: labels.length,
      samples: samples.length,
      histograms: histograms.length,
      exemplars: exemplars.length,
    })),
    metadata: reference.metadata.map(() => ({ isText: true })),
    unknown: reference.unknown?.length ?? 0,
  };
}

describe("scan of a recorded request", () => {
  it("has requests to work on", () => {
    expect(REQUESTS).toHaveLength(19);
  });

  it.each(REQUESTS)("finds what the reference decodes in $name", ({ plain }) => {
    expect(scanned(plain)).toMatchObject(expectedOf(plain));
  });

  it.each(REQUESTS)("leaves no byte of $name out of a series or a metadata entry", ({ plain }) => {
    const found = scanned(plain);
    const bytes = (hexes: readonly string[]): number => hexes.join("").length / 2;
    const prefixes = found.series.map(({ message }) => 1 + varint(message.length / 2).length);
    expect(
      bytes(found.series.map(({ message }) => message)) +
        prefixes.reduce((sum, prefix) => sum + prefix, 0) +
        bytes(found.metadata.map(({ field }) => field)),
    ).toBe(plain.length);
  });

  it.each(REQUESTS)("tells each label of $name by a field that decodes to it", ({ plain }) => {
    for (const { labels, labelFields } of scanned(plain).series) {
      const fields = Buffer.from(labelFields.join(""), "hex");
      expect(decodeReference(series(fields)).series[0]?.labels).toEqual(labels);
    }
  });

  // A prefix of a request is a request only where a field ends.
  it.each(REQUESTS)("refuses $name cut off anywhere but behind a field", ({ plain: whole }) => {
    const plain = cutToFields(whole, 4 * 1024);
    const ends = new Set([0, ...topLevelEnds(plain)]);
    const wrong: unknown[] = [];
    for (let cut = 0; cut <= plain.length; cut++) {
      const scanCut = (): number => scanRequest(plain.subarray(0, cut), 256, IGNORE);
      if (ends.has(cut)) {
        scanCut();
        continue;
      }
      const { code, offset } = wireErrorOf(scanCut);
      if (code !== "WIRE_TRUNCATED" || offset < 0 || offset > cut) wrong.push({ cut, code, offset });
    }
    expect(wrong).toEqual([]);
    expect(ends.size).toBeGreaterThan(1);
  });
});

const A = label("a", "1");
const B = label("b", "2");
const UNKNOWN = [varintField(20, 7), doubleField(21), nested(22, "x"), fixed32Field(23)];

describe("scan of a request that is odd but right", () => {
  const rows = [
    { name: "labels behind samples", plain: series(sample(1), A, B) },
    { name: "labels split by samples", plain: series(A, sample(1), B, sample(2)) },
    { name: "labels out of order", plain: series(B, A, sample(1)) },
    { name: "a value before its name", plain: series(nested(1, nested(2, "1"), nested(1, "a"))) },
    { name: "a label without a value", plain: series(nested(1, nested(1, "a"))) },
    { name: "a label without anything", plain: series(nested(1)) },
    {
      name: "a name and a value twice, of which the last count",
      plain: series(nested(1, nested(1, "x"), nested(2, "y"), nested(1, "a"), nested(2, "1"))),
    },
    { name: "a name that comes again empty", plain: series(nested(1, nested(1, "x"), nested(1))) },
    { name: "a series without anything", plain: series() },
    { name: "a series without labels", plain: series(sample(1)) },
    {
      name: "samples, histograms and exemplars in one series",
      plain: series(A, exemplar(), histogram(), sample(1)),
    },
    { name: "a negative timestamp", plain: series(A, sample(-1)) },
    { name: "a timestamp twice", plain: series(A, nested(2, varintField(2, 1), varintField(2, 2))) },
    { name: "an empty sample", plain: series(A, nested(2)) },
    {
      name: "series and metadata in turns",
      plain: Buffer.concat([metadata(), series(A), metadata(), series(B)]),
    },
    {
      name: "tags padded to two and five bytes",
      plain: Buffer.concat([
        Buffer.from([0x8a, 0x00]),
        varint(5 + A.length - 1),
        Buffer.from([0x8a, 0x80, 0x80, 0x80, 0x00]),
        A.subarray(1),
      ]),
    },
    {
      name: "lengths padded to five bytes",
      plain: Buffer.concat([Buffer.from([0x0a]), varint(A.length, 5), A]),
    },
    { name: "unknown fields of a request", plain: Buffer.concat([...UNKNOWN, series(A), ...UNKNOWN]) },
    { name: "unknown fields of a series", plain: series(...UNKNOWN, A, ...UNKNOWN, sample(1), ...UNKNOWN) },
    {
      name: "unknown fields of a label",
      plain: series(nested(1, ...UNKNOWN, nested(1, "a"), ...UNKNOWN, nested(2, "1"), ...UNKNOWN)),
    },
    {
      name: "unknown fields of a sample",
      plain: series(A, nested(2, ...UNKNOWN, varintField(2, 1), ...UNKNOWN)),
    },
    {
      name: "unknown fields of an exemplar",
      plain: series(A, exemplar(...UNKNOWN, varintField(3, 1), ...UNKNOWN)),
    },
    { name: "unknown fields of an exemplar's label", plain: series(A, exemplar(nested(1, ...UNKNOWN))) },
    {
      name: "unknown fields of a histogram",
      plain: series(A, histogram(...UNKNOWN, varintField(15, 1), ...UNKNOWN)),
    },
    {
      name: "unknown fields of a bucket span",
      plain: series(A, histogram(nested(8, ...UNKNOWN), nested(11, ...UNKNOWN))),
    },
    { name: "unknown fields of a metadata entry", plain: metadata(...UNKNOWN, nested(2, "f"), ...UNKNOWN) },
    {
      name: "unknown fields of the highest number",
      plain: series(A, Buffer.concat([tag(2 ** 29 - 1, VARINT), varint(1)])),
    },
    {
      name: "packed lists in a histogram",
      plain: series(
        A,
        histogram(
          ...[9, 12].map((field) => nested(field, varint(1), varint(2n ** 64n - 1n), varint(300))),
          ...[10, 13, 16].map((field) => nested(field, Buffer.alloc(24, 1))),
        ),
      ),
    },
    {
      name: "lists in a histogram that are not packed",
      plain: series(
        A,
        histogram(
          ...[9, 12, 9, 12].map((field) => varintField(field, 2n ** 64n - 1n)),
          ...[10, 13, 16, 16].map((field) => doubleField(field)),
        ),
      ),
    },
    {
      name: "empty packed lists",
      plain: series(A, histogram(...[9, 10, 12, 13, 16].map((field) => nested(field)))),
    },
    {
      name: "both counts of a histogram",
      plain: series(A, histogram(varintField(1, 5), doubleField(2), doubleField(7), varintField(6, 0))),
    },
    { name: "tenants in metadata", plain: metadata(varintField(11, 2 ** 32 - 1), varintField(12, 7)) },
  ];
  it.each(rows)("finds in $name what the reference decodes", ({ plain }) => {
    expect(scanned(plain)).toMatchObject(expectedOf(plain));
  });

  it("lets the last of a repeated name and value count", () => {
    const twice = nested(1, nested(1, "x"), nested(2, "y"), nested(1, "a"), nested(2, ""));
    expect(scanned(series(twice)).series[0]?.labels).toEqual([["a", ""]]);
  });

  it("finds nothing in an empty request", () => {
    expect(scanned(new Uint8Array(0))).toEqual({ series: [], metadata: [], unknown: 0 });
  });

  it("starts each series anew", () => {
    const plain = Buffer.concat([series(A, B, sample(1), exemplar(nested(1, nested(1, "\xff")))), series()]);
    expect(scanned(plain).series[1]).toEqual({
      labels: [],
      labelFields: [],
      labelsFound: 0,
      samples: 0,
      histograms: 0,
      exemplars: 0,
      restIsText: true,
      message: "",
    });
  });
});

describe("scan of a series with more labels than the limit", () => {
  it("records labels up to the limit and counts all of them", () => {
    const labels = ["a", "b", "c", "d"].map((name) => label(name, "1"));
    const [found] = scanned(series(...labels, sample(1)), 2).series;
    expect(found).toMatchObject({
      labels: [
        ["a", "1"],
        ["b", "1"],
      ],
      labelsFound: 4,
      samples: 1,
    });
  });

  it("still refuses what is malformed above the limit", () => {
    const broken = nested(1, nested(1, "c"), fixed32Field(2));
    expect(wireErrorOf(() => scanned(series(A, B, broken), 1)).code).toBe("WIRE_TYPE");
  });
});

describe("strings that are no UTF-8", () => {
  const BAD = Buffer.from([0x61, 0xff]);
  const rows = [
    { name: "the name of an exemplar's label", plain: series(A, exemplar(label(BAD, "1"))) },
    { name: "a name that a later one replaces", plain: series(nested(1, nested(1, BAD), nested(1, "a"))) },
    {
      name: "a value that a later one replaces",
      plain: series(nested(1, nested(2, BAD), nested(2, "1")), A),
    },
    {
      name: "the value of an exemplar's label",
      plain: series(A, exemplar(label("a", "1"), label("b", BAD))),
    },
    {
      name: "an exemplar before a good one",
      plain: series(exemplar(label("a", BAD)), exemplar(label("a", "1"))),
    },
  ];
  it.each(rows)("are told in $name", ({ plain }) => {
    expect(scanned(plain).series[0]?.restIsText).toBe(false);
  });

  it.each([2, 4, 5])("are told in field %i of a metadata entry", (field) => {
    const plain = Buffer.concat([metadata(nested(field, BAD)), metadata(nested(field, "é"))]);
    expect(scanned(plain).metadata.map(({ isText }) => isText)).toEqual([false, true]);
  });

  it("are left to the caller in names and values that count", () => {
    expect(scanned(series(label(BAD, BAD))).series[0]?.restIsText).toBe(true);
  });

  it("are let pass in fields that this version does not know", () => {
    const plain = series(A, exemplar(nested(22, BAD), nested(1, nested(22, BAD))));
    expect(scanned(plain).series[0]?.restIsText).toBe(true);
  });
});

/** What stands around a message's fields, from the request inwards. */
type Wrap = (...fields: readonly Uint8Array[]) => Uint8Array;

/** A message of the schema: how a request with one is made, and its fields' right wire types. */
interface MessageCase {
  readonly name: string;
  readonly wrap: Wrap;
  readonly fields: Readonly<Record<number, readonly number[]>>;
}

const LABEL_FIELDS = { 1: [LENGTH_DELIMITED], 2: [LENGTH_DELIMITED] };
const SPAN_FIELDS = { 1: [VARINT], 2: [VARINT] };
const MESSAGES: readonly MessageCase[] = [
  {
    name: "a request",
    wrap: (...fields) => Buffer.concat(fields),
    fields: { 1: [LENGTH_DELIMITED], 3: [LENGTH_DELIMITED] },
  },
  {
    name: "a series",
    wrap: series,
    fields: { 1: [LENGTH_DELIMITED], 2: [LENGTH_DELIMITED], 3: [LENGTH_DELIMITED], 4: [LENGTH_DELIMITED] },
  },
  { name: "a label", wrap: (...fields) => series(nested(1, ...fields)), fields: LABEL_FIELDS },
  {
    name: "a sample",
    wrap: (...fields) => series(nested(2, ...fields)),
    fields: { 1: [FIXED64], 2: [VARINT] },
  },
  {
    name: "an exemplar",
    wrap: (...fields) => series(exemplar(...fields)),
    fields: { 1: [LENGTH_DELIMITED], 2: [FIXED64], 3: [VARINT] },
  },
  {
    name: "an exemplar's label",
    wrap: (...fields) => series(exemplar(nested(1, ...fields))),
    fields: LABEL_FIELDS,
  },
  {
    name: "a histogram",
    wrap: (...fields) => series(histogram(...fields)),
    fields: {
      1: [VARINT],
      2: [FIXED64],
      3: [FIXED64],
      4: [VARINT],
      5: [FIXED64],
      6: [VARINT],
      7: [FIXED64],
      8: [LENGTH_DELIMITED],
      9: [VARINT, LENGTH_DELIMITED],
      10: [FIXED64, LENGTH_DELIMITED],
      11: [LENGTH_DELIMITED],
      12: [VARINT, LENGTH_DELIMITED],
      13: [FIXED64, LENGTH_DELIMITED],
      14: [VARINT],
      15: [VARINT],
      16: [FIXED64, LENGTH_DELIMITED],
    },
  },
  {
    name: "a negative span",
    wrap: (...fields) => series(histogram(nested(8, ...fields))),
    fields: SPAN_FIELDS,
  },
  {
    name: "a positive span",
    wrap: (...fields) => series(histogram(nested(11, ...fields))),
    fields: SPAN_FIELDS,
  },
  {
    name: "a metadata entry",
    wrap: metadata,
    fields: {
      1: [VARINT],
      2: [LENGTH_DELIMITED],
      4: [LENGTH_DELIMITED],
      5: [LENGTH_DELIMITED],
      11: [VARINT],
      12: [VARINT],
    },
  },
];

/** A sound value of each wire type; no bytes are a text, a message and a packed list of anything. */
const VALUES: Readonly<Record<number, Buffer>> = {
  [VARINT]: varint(1),
  [FIXED64]: Buffer.alloc(8),
  [LENGTH_DELIMITED]: varint(0),
  [FIXED32]: Buffer.alloc(4),
};

describe.each(MESSAGES)("wire types in $name", ({ wrap, fields }) => {
  const cases = Object.entries(fields).flatMap(([number, right]) =>
    Object.entries(VALUES).map(([wireType, value]) => ({
      number: Number(number),
      wireType: Number(wireType),
      isRight: right.includes(Number(wireType)),
      field: Buffer.concat([tag(Number(number), Number(wireType)), value]),
    })),
  );

  it.each(cases.filter(({ isRight }) => isRight))("may be $wireType in field $number", ({ field }) => {
    expect(() => scanned(wrap(field))).not.toThrow();
  });

  it.each(cases.filter(({ isRight }) => !isRight))(
    "must not be $wireType in field $number",
    ({ field, number, wireType }) => {
      const plain = wrap(field);
      const error = wireErrorOf(() => scanned(plain));
      expect(error).toMatchObject({ code: "WIRE_TYPE", offset: plain.length - field.length });
      expect(error.message).toContain(`field ${number} of `);
      expect(error.message).toContain(`at byte ${plain.length - field.length} has wire type ${wireType}`);
    },
  );

  it.each([START_GROUP, END_GROUP, 6, 7])("are refused when they are %i", (wireType) => {
    const field = Buffer.concat([tag(20, wireType), Buffer.alloc(8, 1)]);
    const plain = wrap(field);
    const error = wireErrorOf(() => scanned(plain));
    expect(error).toMatchObject({ code: "WIRE_TAG", offset: plain.length - 8 });
  });

  it("are refused when the field number is 0", () => {
    const plain = wrap(Buffer.from([0x02, 0x00]));
    expect(wireErrorOf(() => scanned(plain))).toMatchObject({ code: "WIRE_TAG", offset: plain.length - 2 });
  });
});

describe("fields that run past the end of their message", () => {
  // Behind the message that is too short: sound bytes, so that only the message's own end can tell.
  const TAIL = Buffer.concat([series(), series(), series(A, sample(1))]);
  const rows = [
    { name: "a series' label", plain: nested(1, Buffer.from([0x0a, 0x02])), end: 4 },
    { name: "a label's name", plain: nested(1, nested(1, Buffer.from([0x0a, 0x02]))), end: 6 },
    { name: "a label's value", plain: nested(1, nested(1, Buffer.from([0x12, 0x02]))), end: 6 },
    { name: "a label's unknown field", plain: nested(1, nested(1, Buffer.from([0x1d, 0x00]))), end: 6 },
    { name: "a sample's value", plain: nested(1, nested(2, Buffer.from([0x09, 0x00]))), end: 6 },
    { name: "a sample's timestamp", plain: nested(1, nested(2, Buffer.from([0x10, 0x80]))), end: 6 },
    { name: "an exemplar's label", plain: nested(1, nested(3, Buffer.from([0x0a, 0x02]))), end: 6 },
    {
      name: "an exemplar's label's name",
      plain: nested(1, nested(3, nested(1, Buffer.from([0x0a, 0x02])))),
      end: 8,
    },
    { name: "a histogram's count", plain: nested(1, nested(4, Buffer.from([0x08, 0x80]))), end: 6 },
    { name: "a histogram's sum", plain: nested(1, nested(4, Buffer.from([0x19, 0x00]))), end: 6 },
    {
      name: "a histogram's packed varints",
      plain: nested(1, nested(4, nested(9, Buffer.from([0x80])))),
      end: 7,
    },
    {
      name: "a histogram's packed doubles",
      plain: nested(1, nested(4, nested(10, Buffer.alloc(7)))),
      end: 13,
    },
    {
      name: "a bucket span's offset",
      plain: nested(1, nested(4, nested(8, Buffer.from([0x08, 0x80])))),
      end: 8,
    },
    { name: "a metadata entry's help", plain: nested(3, Buffer.from([0x22, 0x02])), end: 4 },
    { name: "a metadata entry's type", plain: nested(3, Buffer.from([0x08, 0x80])), end: 4 },
  ];
  it.each(rows)("are refused in $name, with the message's end", ({ plain, end }) => {
    const error = wireErrorOf(() => scanned(Buffer.concat([plain, TAIL])));
    expect(error).toMatchObject({ code: "WIRE_OVERRUN", offset: end });
    expect(error.message).toContain(`byte ${end}`);
  });

  it.each(rows)("are refused in $name at the end of the request", ({ plain }) => {
    const { code, offset } = wireErrorOf(() => scanned(plain));
    expect(code).toBe("WIRE_TRUNCATED");
    expect(offset).toBeLessThanOrEqual(plain.length);
  });
});

describe("a request that is no remote write 1.0", () => {
  const folder = new URL("../fixtures/rw2_requests/", import.meta.url);
  const requests2 = readdirSync(folder)
    .filter((file) => file.endsWith(".bin"))
    .map((file) => ({ name: file, plain: uncompressBody(readFileSync(new URL(file, folder))) }));

  it("has remote write 2.0 requests to try", () => {
    expect(requests2.length).toBeGreaterThanOrEqual(4);
  });

  it.each(requests2)("is refused as what it is when it is 2.0: $name", ({ plain }) => {
    const error = wireErrorOf(() => scanned(plain));
    expect(error.code).toBe("WIRE_VERSION_2");
    expect(error.message).toMatch(
      /only fields such as [45] at byte \d+; it looks like a remote write 2\.0 message, want 1\.0$/,
    );
    expect(error.offset).toBeLessThan(plain.length);
  });

  it("is refused without that guess when it has other fields", () => {
    const error = wireErrorOf(() => scanned(nested(9, "x")));
    expect(error).toMatchObject({ code: "WIRE_MESSAGE", offset: 0 });
    expect(error.message).not.toContain("2.0");
  });

  it("is taken when one series or metadata entry is among unknown fields", () => {
    for (const known of [seriesOf([["a", "1"]]), metadata()]) {
      expect(scanned(Buffer.concat([...UNKNOWN, known, ...UNKNOWN])).unknown).toBe(8);
    }
  });
});
