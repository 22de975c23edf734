import fc from "fast-check";
import { compress } from "snappyjs";
import { describe, expect, it } from "vitest";
import { compileRoute, type Route } from "../../src/route/decide.ts";
import type { LabelLimits, ParcelLimits } from "../../src/route/options.ts";
import { joinParcels } from "../../src/wire/parcel.ts";
import {
  decodeBody,
  decodeReference,
  encodeReference,
  type ReferenceSeries,
  uncompressBody,
} from "../reference/writeRequest.ts";
import {
  exemplar,
  histogram,
  label,
  metadata,
  nested,
  sample,
  series,
  seriesOf,
  varintField,
} from "../wire/handmade.ts";
import { plainRequests } from "../wire/plainRequests.ts";
import { wireErrorOf } from "../wire/wireErrorOf.ts";
import { exampleRoute } from "./exampleRoute.ts";
import { labelled } from "./labelled.ts";
import { LABEL_LIMITS, MIB, type Routed, routeBlock, routePlain, routerOf, withBodies } from "./routed.ts";

const ROOMY: ParcelLimits = { maxItems: 10_000, maxPlainBytes: 8 * MIB };
const AGGREGATION = compileRoute(exampleRoute());
const ARCHIVE = compileRoute(
  exampleRoute({
    name: "archive",
    tasks: null,
    placement: { key: { kind: "all" }, algorithm: "jump", missingKey: "one_place" },
    upstreams: ["old-0", "old-1"],
  }),
);
const BY_JOB = compileRoute(
  exampleRoute({
    name: "by-job",
    placement: { key: { kind: "by", names: ["job"] }, algorithm: "jump", missingKey: "one_place" },
  }),
);
const ONE_UPSTREAM = compileRoute(exampleRoute({ upstreams: ["only"] }));

/** Routes a request with a cold table, and once more with decisions in it, which must come to the same. */
function routed(
  plain: Uint8Array,
  routes: readonly Route[],
  limits: ParcelLimits = ROOMY,
  labels: LabelLimits = LABEL_LIMITS,
): Routed {
  const router = routerOf(
    routes.map((route) => ({ route, limits })),
    { labels, metadata: limits },
  );
  const first = routePlain(router, plain);
  expect(comparable(routePlain(router, plain))).toBe(comparable(first));
  return first;
}

/** All of it as text, what was forwarded decompressed: how bytes are packed depends on what was new. */
function comparable({ refused, ...rest }: Routed): string {
  return JSON.stringify({ ...rest, refused: [...refused] }, (_key, value: unknown) =>
    value instanceof Uint8Array ? Buffer.from(uncompressBody(value)).toString("latin1") : value,
  );
}

/** Slot by slot, what each upstream of a route has to get, in order. */
function expectedBySlot(received: readonly ReferenceSeries[], route: Route): Map<number, ReferenceSeries[]> {
  const bySlot = new Map<number, ReferenceSeries[]>();
  for (const each of received) {
    const { slot, series: forwarded } = labelled(each, route);
    bySlot.set(slot, [...(bySlot.get(slot) ?? []), forwarded]);
  }
  return bySlot;
}

function itemsOf({ samples, histograms, exemplars }: ReferenceSeries): number {
  return samples.length + histograms.length + exemplars.length;
}

function plainBytesOf(forwarded: readonly ReferenceSeries[]): number {
  return encodeReference({ series: forwarded, metadata: [] }).length;
}

/** Checks everything about the parcels of one request; `plain` must be encoded as protobufjs would. */
function expectRightParcels(plain: Uint8Array, routes: readonly Route[], limits: ParcelLimits): void {
  const reference = decodeReference(plain);
  const result = routed(plain, routes, limits);
  routes.forEach((route, index) => {
    const consignments = result.consignments.filter((consignment) => consignment.route === index);
    const forwarded = new Map(
      consignments.map(({ slot, parcels }) => [slot, parcels.flatMap(({ body }) => decodeBody(body).series)]),
    );
    expect(consignments).toHaveLength(forwarded.size);
    const expected = expectedBySlot(reference.series, route);
    expect(forwarded).toEqual(expected);
    for (const { slot, parcels } of consignments) {
      // Bit for bit, not only in meaning.
      const bytes = Buffer.concat(parcels.map(({ body }) => uncompressBody(body)));
      const wanted = encodeReference({ series: expected.get(slot) ?? [], metadata: [] });
      expect(bytes.equals(wanted)).toBe(true);
      expectFullParcels(parcels, limits);
    }
  });
}

/** Checks what parcels say of themselves, that they keep to the limits, and that none was closed too early. */
function expectFullParcels(parcels: Routed["consignments"][number]["parcels"], limits: ParcelLimits): void {
  const contents = parcels.map(({ body }) => decodeBody(body).series);
  parcels.forEach((parcel, index) => {
    const content = contents[index] ?? [];
    const items = content.reduce((sum, each) => sum + itemsOf(each), 0);
    const { samples, histograms, exemplars } = parcel.items;
    expect(samples).toBe(content.flatMap((each) => each.samples).length);
    expect(histograms).toBe(content.flatMap((each) => each.histograms).length);
    expect(exemplars).toBe(content.flatMap((each) => each.exemplars).length);
    expect(parcel.series).toBe(content.length);
    expect(parcel.plainBytes).toBe(uncompressBody(parcel.body).length);
    if (content.length > 1) {
      expect(items).toBeLessThanOrEqual(limits.maxItems);
      expect(parcel.plainBytes).toBeLessThanOrEqual(limits.maxPlainBytes);
    }
    const [next] = contents[index + 1] ?? [];
    if (next === undefined) return;
    const tooMany = items + itemsOf(next) > limits.maxItems;
    expect(tooMany || parcel.plainBytes + plainBytesOf([next]) > limits.maxPlainBytes).toBe(true);
  });
}

function sumOfItems(
  result: Routed,
  route: number,
): { series: number; samples: number; histograms: number; exemplars: number } {
  const sum = { series: 0, samples: 0, histograms: 0, exemplars: 0 };
  for (const consignment of result.consignments) {
    if (consignment.route !== route) continue;
    for (const { series: count, items } of consignment.parcels) {
      sum.series += count;
      sum.samples += items.samples;
      sum.histograms += items.histograms;
      sum.exemplars += items.exemplars;
    }
  }
  return sum;
}

describe("a recorded request", () => {
  const requests = plainRequests();
  const limits = [
    { limit: "roomy limits", ...ROOMY },
    { limit: "five items a parcel", maxItems: 5, maxPlainBytes: 8 * MIB },
    { limit: "one item a parcel", maxItems: 1, maxPlainBytes: 8 * MIB },
    { limit: "700 plain bytes a parcel", maxItems: 10_000, maxPlainBytes: 700 },
    { limit: "both limits small", maxItems: 3, maxPlainBytes: 500 },
  ];
  const rows = requests.flatMap(({ name, plain }) => limits.map((limit) => ({ name, plain, ...limit })));

  it.each(rows)(
    "ends up whole in one parcel of each route, in order and bit for bit: $name, $limit",
    ({ plain, maxItems, maxPlainBytes }) => {
      expectRightParcels(plain, [AGGREGATION, ARCHIVE], { maxItems, maxPlainBytes });
    },
  );

  it.each(rows)(
    "has its metadata in requests of their own: $name, $limit",
    ({ plain, maxItems, maxPlainBytes }) => {
      const reference = decodeReference(plain);
      const result = routed(plain, [AGGREGATION, ARCHIVE], { maxItems, maxPlainBytes });
      const requestsOfMetadata = result.metadata.map(({ body }) => decodeBody(body));
      expect(requestsOfMetadata.flatMap((each) => each.metadata)).toEqual(reference.metadata);
      expect(result.metadata.map(({ entries }) => entries)).toEqual(
        requestsOfMetadata.map((each) => each.metadata.length),
      );
      expect(result.metadataEntries).toBe(reference.metadata.length);
      expect(result.metadataDropped).toBe(0);
      for (const { body, entries } of result.metadata) {
        expect(entries).toBeLessThanOrEqual(maxItems);
        if (entries > 1) expect(uncompressBody(body).length).toBeLessThanOrEqual(maxPlainBytes);
      }
      expect(requestsOfMetadata.every((each) => each.series.length === 0)).toBe(true);
    },
  );

  it.each(requests)("is counted: $name", ({ plain }) => {
    const reference = decodeReference(plain);
    const result = routed(plain, [AGGREGATION, ARCHIVE]);
    const received = {
      series: reference.series.length,
      samples: reference.series.flatMap(({ samples }) => samples).length,
      histograms: reference.series.flatMap(({ histograms }) => histograms).length,
      exemplars: reference.series.flatMap(({ exemplars }) => exemplars).length,
    };
    expect(result.received).toMatchObject(received);
    expect(sumOfItems(result, 0)).toEqual(received);
    expect(sumOfItems(result, 1)).toEqual(received);
    expect(result.refused.size).toBe(0);
    expect(result.unknownFields).toBe(0);
  });
});

/** How many series each parcel of a request holds that goes to a single upstream. */
function seriesPerParcel(plain: Uint8Array, limits: ParcelLimits): number[] {
  const [only] = routed(plain, [ONE_UPSTREAM], limits).consignments;
  return (only?.parcels ?? []).map((parcel) => parcel.series);
}

describe("the limits of a parcel", () => {
  const small = (index: number, samples = 1): Buffer =>
    series(label("a", String(index)), ...Array.from({ length: samples }, (_, at) => sample(at + 1)));

  it("let it have exactly as many items as they say", () => {
    const plain = Buffer.concat([small(1, 2), small(2, 2), small(3, 2), small(4, 1), small(5, 1)]);
    expect(seriesPerParcel(plain, { maxItems: 4, maxPlainBytes: MIB })).toEqual([2, 3]);
  });

  it("count histograms and exemplars as items", () => {
    const each = [sample(1), histogram(), exemplar()].map((item) => series(label("a", "1"), item));
    expect(seriesPerParcel(Buffer.concat(each), { maxItems: 2, maxPlainBytes: MIB })).toEqual([2, 1]);
  });

  it("let it have exactly as many plain bytes as they say, with the task label", () => {
    const plain = Buffer.concat([small(1), small(2)]);
    const reference = decodeReference(plain).series;
    const bytes = plainBytesOf(reference.map((each) => labelled(each, ONE_UPSTREAM).series));
    expect(bytes).toBeGreaterThan(plain.length);
    expect(seriesPerParcel(plain, { maxItems: 10, maxPlainBytes: bytes })).toEqual([2]);
    expect(seriesPerParcel(plain, { maxItems: 10, maxPlainBytes: bytes - 1 })).toEqual([1, 1]);
    expect(seriesPerParcel(plain, { maxItems: 10, maxPlainBytes: plain.length })).toEqual([1, 1]);
  });

  it("send a series with more items than they allow alone", () => {
    const plain = Buffer.concat([small(1), small(2, 9), small(3), small(4)]);
    expect(seriesPerParcel(plain, { maxItems: 4, maxPlainBytes: MIB })).toEqual([1, 1, 2]);
  });

  it("send a series with more bytes than they allow alone", () => {
    const big = seriesOf([["a", "x".repeat(1000)]]);
    const plain = Buffer.concat([small(1), big, small(3), small(4), big]);
    expect(seriesPerParcel(plain, { maxItems: 10, maxPlainBytes: 200 })).toEqual([1, 1, 2, 1]);
  });

  it("take a series without items as one without items", () => {
    const plain = Buffer.concat([small(1, 2), small(2, 0), small(3, 0), small(4)]);
    expect(seriesPerParcel(plain, { maxItems: 2, maxPlainBytes: MIB })).toEqual([3, 1]);
  });

  it("are those of each route", () => {
    const plain = Buffer.concat([1, 2, 3, 4].map((index) => small(index)));
    const router = routerOf(
      [1, 2, 4].map((maxItems) => ({ route: ONE_UPSTREAM, limits: { maxItems, maxPlainBytes: MIB } })),
    );
    const perRoute = routePlain(router, plain).consignments.map(({ route, parcels }) => [
      route,
      parcels.length,
    ]);
    expect(perRoute).toEqual([
      [0, 4],
      [1, 2],
      [2, 1],
    ]);
  });
});

describe("the limits of a metadata request", () => {
  const entry = (family: string): Buffer => metadata(nested(2, family));
  const entriesPerRequest = (plain: Uint8Array, limits: ParcelLimits): number[] =>
    routed(plain, [AGGREGATION], limits).metadata.map(({ entries }) => entries);

  it("are kept exactly, and an entry above them goes alone", () => {
    const plain = Buffer.concat([
      entry("a"),
      entry("b"),
      entry("x".repeat(100)),
      entry("c"),
      entry("d"),
      entry("e"),
    ]);
    expect(entriesPerRequest(plain, { maxItems: 2, maxPlainBytes: MIB })).toEqual([2, 2, 2]);
    expect(entriesPerRequest(plain, { maxItems: 9, maxPlainBytes: 2 * entry("a").length })).toEqual([
      2, 1, 2, 1,
    ]);
  });

  it("are joined by one on the whole request, above which entries are dropped and counted", () => {
    const entries = 310_000;
    const router = routerOf([{ route: AGGREGATION, limits: ROOMY }], { metadata: ROOMY });
    const result = routePlain(router, Buffer.alloc(entries * 2, metadata()));
    expect(result).toMatchObject({
      metadataEntries: entries,
      metadataDropped: 0,
      metadataBeyondLimit: 10_000,
    });
    expect(result.metadata.reduce((sum, body) => sum + body.entries, 0)).toBe(300_000);
  });

  it("do not count entries that go nowhere since they are no UTF-8", () => {
    const plain = Buffer.concat([entry("a"), metadata(nested(4, Buffer.from([0xff]))), entry("é")]);
    const result = routed(plain, [AGGREGATION], ROOMY);
    expect(
      result.metadata.flatMap(({ body }) => decodeBody(body).metadata.map(({ family }) => family)),
    ).toEqual(["a", Buffer.from("é").toString("latin1")]);
    expect(result).toMatchObject({ metadataEntries: 3, metadataDropped: 1 });
  });
});

describe("series refused at the door", () => {
  const good = [1, 2, 3].map((index) =>
    series(label("a", String(index)), sample(index), exemplar(), histogram()),
  );
  const bad = [
    series(label("", "x"), sample(1), sample(2)),
    series(label("b", "1"), label("b", "2"), histogram()),
    series(label("c", Buffer.from([0xff])), exemplar(), exemplar()),
    series(label("d", "1"), label("d", "1")),
  ];
  const mixed = Buffer.concat(good.flatMap((each, index) => [bad[index] ?? each, each]).concat(bad.slice(3)));

  it("leave the parcels of the others as they would be without them", () => {
    const routes = [AGGREGATION, ARCHIVE];
    expect(routed(mixed, routes).consignments).toEqual(routed(Buffer.concat(good), routes).consignments);
  });

  it("are counted by reason, with their items", () => {
    const { refused, received } = routed(mixed, [AGGREGATION]);
    expect(new Map([...refused].map(([reason, counts]) => [reason, { ...counts }]))).toEqual(
      new Map([
        ["empty_label_name", { series: 1, samples: 2, histograms: 0, exemplars: 0 }],
        ["duplicate_label_name", { series: 2, samples: 0, histograms: 1, exemplars: 0 }],
        ["invalid_utf8", { series: 1, samples: 0, histograms: 0, exemplars: 2 }],
      ]),
    );
    expect(received).toMatchObject({ series: 7, samples: 5, histograms: 4, exemplars: 5 });
  });

  it("are shown by the first three of them", () => {
    expect(routed(mixed, [AGGREGATION]).refusedExamples).toEqual([
      { reason: "empty_label_name", series: '{""="x"}' },
      { reason: "duplicate_label_name", series: '{b="1",b="2"}' },
      { reason: "invalid_utf8", series: '{c="\ufffd"}' },
    ]);
  });

  it("are shown cut when they are long, with the labels that the limit let in", () => {
    const limits = { ...LABEL_LIMITS, maxLabels: 2 };
    const plain = series(label("a", "1"), label("b", "x".repeat(70_000)), label("c", "2"));
    const [example] = routed(plain, [AGGREGATION], ROOMY, limits).refusedExamples;
    expect(example?.reason).toBe("too_many_labels");
    expect(example?.series).toBe(`{a="1",b="${"x".repeat(189)}…`);
  });

  it("go to no upstream when all are refused", () => {
    expect(routed(Buffer.concat(bad), [AGGREGATION, ARCHIVE]).consignments).toEqual([]);
  });
});

describe("a request that is odd but right", () => {
  const odd = [
    series(sample(1), label("z", "1"), sample(2), label("a", "2"), varintField(20, 7)),
    series(),
    series(sample(3)),
    series(label("a", "1"), nested(2, varintField(2, 1), varintField(2, 2), nested(22, "x"))),
    series(label("a", "1"), histogram(nested(9, Buffer.from([1, 2])), varintField(9, 3), nested(22, "y"))),
  ];

  it("is forwarded, unknown fields of its series with it", () => {
    const plain = Buffer.concat(odd);
    const [only] = routed(plain, [ONE_UPSTREAM]).consignments;
    const forwarded = (only?.parcels ?? []).flatMap(({ body }) => decodeBody(body).series);
    expect(forwarded).toEqual(
      decodeReference(plain).series.map((each) => labelled(each, ONE_UPSTREAM).series),
    );
  });

  it("is forwarded without the top-level fields that are unknown, which are counted", () => {
    const plain = Buffer.concat([varintField(9, 1), ...odd, nested(10, "x"), metadata(), varintField(9, 2)]);
    const result = routed(plain, [ONE_UPSTREAM]);
    expect(result.unknownFields).toBe(3);
    expect(result.consignments).toEqual(routed(Buffer.concat(odd), [ONE_UPSTREAM]).consignments);
    expect(result.metadata.map(({ body }) => Buffer.from(uncompressBody(body)).toString("hex"))).toEqual([
      "1a00",
    ]);
  });

  it("is nothing when it is empty", () => {
    const result = routed(new Uint8Array(0), [AGGREGATION]);
    expect(result).toMatchObject({
      consignments: [],
      metadata: [],
      received: { series: 0 },
      unknownFields: 0,
    });
  });
});

describe("a request that is broken at its end", () => {
  it("is refused whole, however good its beginning is", () => {
    const good = seriesOf([["a", "1"]]);
    const error = wireErrorOf(() => routed(Buffer.concat([good, good.subarray(0, -1)]), [AGGREGATION]));
    expect(error).toMatchObject({ code: "WIRE_TRUNCATED", offset: good.length + 1 });
  });
});

describe("series without the labels that a route keys by", () => {
  it("are counted for the routes that do", () => {
    const plain = Buffer.concat([
      seriesOf([["a", "1"]]),
      seriesOf([["job", "x"]]),
      seriesOf([["job", ""]]),
      seriesOf([["", "refused"]]),
    ]);
    expect(routed(plain, [AGGREGATION, BY_JOB, ARCHIVE]).missingKeyLabels).toEqual([0, 2, 0]);
  });
});

describe("any request", () => {
  const names = fc.constantFrom("a", "b", "job", "stream_task_id", "stream_task_j", "é", "～", "😀", "");
  const labels = fc.array(fc.tuple(names, fc.string({ maxLength: 5 })), { maxLength: 3 });
  const items = fc.array(
    fc.constantFrom(sample(1), sample(-1, "7ff0000000000002"), histogram(), exemplar()),
    {
      maxLength: 4,
    },
  );
  const anySeries = fc
    .tuple(labels, items)
    .map(([pairs, content]) => series(...pairs.map(([name, value]) => label(name, value)), ...content));
  const limits = fc.record({
    maxItems: fc.integer({ min: 1, max: 6 }),
    maxPlainBytes: fc.integer({ min: 1, max: 200 }),
  });
  const isTaken = (each: ReferenceSeries): boolean => {
    const names = each.labels.map(([name]) => name);
    return !names.includes("") && new Set(names).size === names.length;
  };

  it("is received as what is refused and what each route is given, and the rest arrives in full parcels", () => {
    fc.assert(
      fc.property(fc.array(anySeries, { maxLength: 12 }), limits, (each, parcelLimits) => {
        const plain = Buffer.concat(each);
        const result = routed(plain, [AGGREGATION, BY_JOB, ARCHIVE], parcelLimits);
        for (const route of [0, 1, 2]) {
          const sum = sumOfItems(result, route);
          for (const counts of result.refused.values()) {
            sum.series += counts.series;
            sum.samples += counts.samples;
            sum.histograms += counts.histograms;
            sum.exemplars += counts.exemplars;
          }
          expect(result.received).toMatchObject(sum);
        }
        const taken = decodeReference(plain).series.filter(isTaken);
        expectRightParcels(
          encodeReference({ series: taken, metadata: [] }),
          [AGGREGATION, BY_JOB, ARCHIVE],
          parcelLimits,
        );
        expect(sumOfItems(result, 0).series).toBe(taken.length);
      }),
      { seed: 1, numRuns: 300 },
    );
  });
});

describe("a request of very many series", () => {
  const seriesCount = 10_500;
  const plain = Buffer.concat(
    Array.from({ length: seriesCount }, (_, index) => seriesOf([["a", String(index)]])),
  );

  it("is routed in steps, between which others take theirs, and its parcels go on from step to step", () => {
    const router = routerOf([{ route: ONE_UPSTREAM, limits: { maxItems: 6000, maxPlainBytes: MIB } }]);
    const steps = router.route([compress(new Uint8Array(plain))]);
    const small = seriesOf([["small", "x"]]);
    let pauses = 0;
    let step = steps.next();
    for (; step.done !== true; step = steps.next()) {
      pauses += 1;
      expect(routePlain(router, small).received.series).toBe(1);
    }
    expect(pauses).toBeGreaterThan(5);
    expect(step.value.received.series).toBe(seriesCount);
    const parcels = step.value.consignments.flatMap((consignment) => consignment.parcels);
    expect(parcels.map((parcel) => parcel.series)).toEqual([6000, 4500]);
    const forwarded = parcels.flatMap((parcel) => decodeBody(joinParcels([parcel])).series);
    expect(forwarded).toEqual(
      decodeReference(plain).series.map((each) => labelled(each, ONE_UPSTREAM).series),
    );
  });

  it("has the parcels that it has alone, when another one takes turns with it", () => {
    const limits = { maxItems: 700, maxPlainBytes: MIB };
    const blocks = ["first", "second"].map((name) => {
      // The last steps have series for one upstream only, while parcels for the others are open.
      const fields = Array.from({ length: 9000 }, (_, index) =>
        seriesOf([[name, String(Math.min(index, 3000))]]),
      );
      return compress(new Uint8Array(Buffer.concat(fields)));
    });
    const router = routerOf([{ route: AGGREGATION, limits }]);
    const alone = blocks.map((block) => comparable(routeBlock(router, block)));
    const works = blocks.map((block) => router.route([block]));
    const together = new Map<number, string>();
    while (together.size < works.length) {
      works.forEach((steps, index) => {
        if (together.has(index)) return;
        const step = steps.next();
        if (step.done === true) together.set(index, comparable(withBodies(step.value)));
      });
    }
    expect(alone.map((_, index) => together.get(index))).toEqual(alone);
  });
});
