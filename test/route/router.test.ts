import fc from "fast-check";
import { compress } from "snappyjs";
import { describe, expect, it } from "vitest";
import type { LabelLimits, ParcelLimits, RouteOptions } from "../../src/route/options.ts";
import type { Router } from "../../src/route/router.ts";
import { type RequestTenants, Tenants, UNKEPT_CONTEXT } from "../../src/route/tenants.ts";
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
import { exampleRoute, slotsOf, TASK_LABEL } from "./exampleRoute.ts";
import { labelled } from "./labelled.ts";
import {
  LABEL_LIMITS,
  MIB,
  NO_TENANTS,
  type Routed,
  routeBlock,
  routePlain,
  routerOf,
  type RouterShape,
  withBodies,
} from "./routed.ts";
import { drop, keep, labelDrop, rulesOf, set } from "./rules.ts";

const ROOMY: ParcelLimits = { maxItems: 10_000, maxPlainBytes: 8 * MIB };
const AGGREGATION = exampleRoute();
const ARCHIVE = exampleRoute({
  name: "archive",
  tasks: null,
  placement: { key: { kind: "all" }, algorithm: "jump", missingKey: "one_place", replicas: 1 },
  upstreams: slotsOf("old-0", "old-1"),
});
const BY_JOB = exampleRoute({
  name: "by-job",
  placement: { key: { kind: "by", names: ["job"] }, algorithm: "jump", missingKey: "one_place", replicas: 1 },
});
const ONE_UPSTREAM = exampleRoute({ upstreams: slotsOf("only") });

/** Routes a request with a cold table, and once more with decisions in it, which must come to the same. */
function routed(
  plain: Uint8Array,
  routes: readonly RouteOptions[],
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
function comparable({ refused, consignments, tallies, ...rest }: Routed): string {
  // What is named first depends on where steps end.
  const sorted = {
    ...rest,
    refused: [...refused],
    consignments: consignments.toSorted((a, b) => a.route - b.route || a.upstream - b.upstream),
    tallies: tallies.map((each) => JSON.stringify(each)).sort(),
  };
  return JSON.stringify(sorted, (_key, value: unknown) =>
    value instanceof Uint8Array ? Buffer.from(uncompressBody(value)).toString("latin1") : value,
  );
}

/** Upstream by upstream, what each upstream of a route has to get, in order. */
function expectedBySlot(
  received: readonly ReferenceSeries[],
  route: RouteOptions,
): Map<number, ReferenceSeries[]> {
  const byUpstream = new Map<number, ReferenceSeries[]>();
  for (const each of received) {
    const { upstream, series: forwarded } = labelled(each, route);
    byUpstream.set(upstream, [...(byUpstream.get(upstream) ?? []), forwarded]);
  }
  return byUpstream;
}

function itemsOf({ samples, histograms, exemplars }: ReferenceSeries): number {
  return samples.length + histograms.length + exemplars.length;
}

function plainBytesOf(forwarded: readonly ReferenceSeries[]): number {
  return encodeReference({ series: forwarded, metadata: [] }).length;
}

/** Checks everything about the parcels of one request; `plain` must be encoded as protobufjs would. */
function expectRightParcels(plain: Uint8Array, routes: readonly RouteOptions[], limits: ParcelLimits): void {
  const reference = decodeReference(plain);
  const result = routed(plain, routes, limits);
  routes.forEach((route, index) => {
    const consignments = result.consignments.filter((consignment) => consignment.route === index);
    const forwarded = new Map(
      consignments.map(({ upstream, parcels }) => [
        upstream,
        parcels.flatMap(({ body }) => decodeBody(body).series),
      ]),
    );
    expect(consignments).toHaveLength(forwarded.size);
    const expected = expectedBySlot(reference.series, route);
    expect(forwarded).toEqual(expected);
    for (const { upstream, parcels } of consignments) {
      // Bit for bit, not only in meaning.
      const bytes = Buffer.concat(parcels.map(({ body }) => uncompressBody(body)));
      const wanted = encodeReference({ series: expected.get(upstream) ?? [], metadata: [] });
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
    expect(routed(plain, [AGGREGATION, BY_JOB, ARCHIVE]).tallies).toMatchObject([
      { tally: { kind: "missing_key_labels", route: 1 }, counts: { series: 2 } },
    ]);
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
    const steps = router.route([compress(new Uint8Array(plain))], NO_TENANTS);
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
    const works = blocks.map((block) => router.route([block], NO_TENANTS));
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

/** Takes all steps of a request, counts the pauses between them, and holds the router to counts that only grow. */
function routeCounting(
  router: Router,
  plain: Uint8Array,
  tenants = NO_TENANTS,
): { pauses: number; result: Routed } {
  const steps = router.route([compress(new Uint8Array(plain))], tenants);
  let pauses = 0;
  let before = router.decisionTable;
  let step = steps.next();
  for (; step.done !== true; step = steps.next()) {
    pauses += 1;
    const { newSeries, knownSeries } = router.decisionTable;
    expect(newSeries).toBeGreaterThanOrEqual(before.newSeries);
    expect(knownSeries).toBeGreaterThanOrEqual(before.knownSeries);
    before = router.decisionTable;
  }
  return { pauses, result: withBodies(step.value) };
}

describe("a series with a copy for each of 300 upstreams", () => {
  const names = Array.from({ length: 300 }, (_, slot) => `up-${slot}`);
  const { placement } = exampleRoute();
  const route = exampleRoute({
    upstreams: slotsOf(...names),
    placement: { ...placement, replicas: names.length },
  });

  it("reaches all of them, decided each time, since such a decision is too long for the table", () => {
    const router = routerOf([{ route, limits: ROOMY }]);
    for (const time of [1, 2]) {
      const { consignments } = routePlain(router, seriesOf([["a", "1"]]));
      expect(consignments.map(({ upstream }) => upstream).toSorted((a, b) => a - b)).toEqual([
        ...names.keys(),
      ]);
      expect(new Set(consignments.map(({ replica }) => replica)).size).toBe(names.length);
      expect(router.decisionTable).toMatchObject({ series: 0, newSeries: time });
    }
  });
});

describe("requests of several tenants", () => {
  const tenant = { header: "x-scope-orgid", label: "tenant", pass: false };
  const routes = [
    exampleRoute({ name: "labelled", tenant }),
    exampleRoute({
      name: "acme",
      tenant,
      relabel: rulesOf(keep("tenant", "acme")),
      tasks: null,
      placement: ARCHIVE.placement,
    }),
    ARCHIVE,
  ];
  const plain = Buffer.concat([1, 2, 3, 4, 5, 6].map((index) => seriesOf([["a", String(index)]])));
  const build = (shape: RouterShape = {}): Router =>
    routerOf(
      routes.map((route) => ({ route, limits: ROOMY })),
      shape,
    );
  const registry = new Tenants(
    routes.map((route) => route.tenant),
    1024,
  );
  const acme = registry.of(() => ["acme"]);
  const other = registry.of(() => ["other"]);
  const none = registry.of(() => undefined);
  const alone = (tenants: RequestTenants): string => comparable(routePlain(build(), plain, tenants));

  it("come to different labels and routes", () => {
    const labelsOf = (tenants: RequestTenants): string[] =>
      routePlain(build(), plain, tenants)
        .consignments.filter(({ route }) => route < 2)
        .flatMap(({ route, parcels }) =>
          parcels.flatMap(({ body }) =>
            decodeBody(body).series.map(({ labels }) => {
              const others = labels.filter(([name]) => name !== TASK_LABEL);
              return `${route} ${others.map((pair) => pair.join("=")).join(",")}`;
            }),
          ),
        )
        .sort();
    const each = (route: number, more: string): string[] =>
      [1, 2, 3, 4, 5, 6].map((index) => `${route} a=${index}${more}`);
    expect(labelsOf(acme)).toEqual([...each(0, ",tenant=acme"), ...each(1, ",tenant=acme")]);
    expect(labelsOf(other)).toEqual(each(0, ",tenant=other"));
    expect(labelsOf(none)).toEqual(each(0, ""));
  });

  const shapes: readonly { readonly table: string; readonly shape: RouterShape }[] = [
    { table: "a roomy table", shape: {} },
    { table: "a table of one series", shape: { tableSeries: 1 } },
    { table: "a table of five series", shape: { tableSeries: 5 } },
  ];
  const orders = [
    [acme, other, none],
    [none, other, acme],
    [other, acme, none],
  ];
  it.each(shapes)("never share decisions, cold or warm, in any order, with $table", ({ shape }) => {
    for (const order of orders) {
      const router = build(shape);
      for (const tenants of [...order, ...order, ...order.toReversed()]) {
        expect(comparable(routePlain(router, plain, tenants))).toBe(alone(tenants));
      }
    }
  });

  it("never share decisions when they take turns step by step", () => {
    const router = build({ isDue: () => true });
    const block = compress(new Uint8Array(plain));
    const works = [acme, other, none, acme].map((tenants) => ({
      tenants,
      steps: router.route([block], tenants),
    }));
    const results = new Map<number, string>();
    while (results.size < works.length) {
      works.forEach(({ steps }, index) => {
        if (results.has(index)) return;
        const step = steps.next();
        if (step.done === true) results.set(index, comparable(withBodies(step.value)));
      });
    }
    expect(works.map((_, index) => results.get(index))).toEqual(works.map(({ tenants }) => alone(tenants)));
  });

  it("have a decision in the table for each of them", () => {
    const router = build();
    for (const tenants of [acme, other, acme, other, none]) routePlain(router, plain, tenants);
    expect(router.decisionTable).toMatchObject({ series: 18, newSeries: 18, knownSeries: 12 });
  });

  it("leave nothing in the table in the context whose decisions are not kept", () => {
    const router = build();
    for (const { byRoute } of [acme, other, none, other, acme]) {
      const tenants = { context: UNKEPT_CONTEXT, byRoute };
      const wanted = alone({ context: 1, byRoute });
      expect(comparable(routePlain(router, plain, tenants))).toBe(wanted);
    }
    expect(router.decisionTable).toMatchObject({ series: 0, newSeries: 30, knownSeries: 0 });
  });

  it("find no decision of others in the context whose decisions are not kept, and leave theirs alone", () => {
    const router = build();
    routePlain(router, plain, acme);
    const unkept = { context: UNKEPT_CONTEXT, byRoute: other.byRoute };
    expect(comparable(routePlain(router, plain, unkept))).toBe(alone(other));
    expect(comparable(routePlain(router, plain, acme))).toBe(alone(acme));
    expect(router.decisionTable).toMatchObject({ series: 6, newSeries: 12, knownSeries: 6 });
  });
});

describe("what rules and routes do with series", () => {
  const routes = [
    exampleRoute({ name: "a", relabel: rulesOf(keep("kind", "[ab]"), labelDrop("kind")) }),
    exampleRoute({
      name: "b",
      final: true,
      relabel: rulesOf(drop("kind", "[acd]")),
      upstreams: slotsOf("only"),
    }),
    exampleRoute({
      name: "c",
      relabel: rulesOf(drop("kind", "d")),
      upstreams: [{ name: "only", writeRelabel: rulesOf(drop("kind", "c")) }],
    }),
  ];
  const build = (shape: RouterShape = {}): Router =>
    routerOf(
      routes.map((route) => ({ route, limits: ROOMY })),
      { globalRules: rulesOf(drop("kind", "g"), set("global", "1")), ...shape },
    );
  const kinds = ["a", "b", "c", "d", "e", "g"];
  const seriesCount = 3000;
  const every = Array.from({ length: seriesCount }, (_, index) =>
    series(
      label("kind", kinds[index % 6] ?? ""),
      label("n", String(index)),
      sample(1),
      sample(2),
      exemplar(),
    ),
  );
  const plain = Buffer.concat(every);
  const counted = (times: number): object => {
    const each = (seriesCount / 6) * times;
    return { series: each, samples: each * 2, histograms: 0, exemplars: each };
  };
  const expected = [
    { tally: { kind: "unrouted", reason: "no_route" }, counts: counted(1) },
    { tally: { kind: "unrouted", reason: "relabel_configs" }, counts: counted(1) },
    { tally: { kind: "not_selected", route: 0 }, counts: counted(4) },
    { tally: { kind: "not_selected", route: 1 }, counts: counted(4) },
    { tally: { kind: "not_selected", route: 2 }, counts: counted(4) },
    { tally: { kind: "dropped", route: 2, replica: 0, reason: "write_relabel_configs" }, counts: counted(1) },
  ];

  it.each([
    { name: "in one request of several steps, cold and warm", shape: {} },
    { name: "with decisions that are lost again", shape: { tableSeries: 1 } },
    { name: "with a step for each series", shape: { isDue: () => true } },
  ])("is counted with all items, $name", ({ shape }) => {
    const router = build(shape);
    for (let time = 0; time < 2; time++) {
      const { pauses, result } = routeCounting(router, plain);
      expect(pauses).toBeGreaterThan(0);
      expect(result.tallies).toHaveLength(expected.length);
      expect(result.tallies).toEqual(expect.arrayContaining(expected));
      const sent = [0, 1, 2].map((route) => sumOfItems(result, route));
      expect(sent).toEqual([counted(2), counted(2), counted(1)]);
    }
  });

  it("is nothing that another route sees", () => {
    const result = routePlain(build(), Buffer.concat(every.slice(0, 12)));
    const namesOf = (route: number): Set<string> =>
      new Set(
        result.consignments
          .filter((consignment) => consignment.route === route)
          .flatMap(({ parcels }) => parcels.flatMap(({ body }) => decodeBody(body).series))
          .map(({ labels }) => labels.map(([name]) => name).join()),
      );
    expect(namesOf(0)).toEqual(new Set([`global,n,${TASK_LABEL}`]));
    expect(namesOf(1)).toEqual(new Set([`global,kind,n,${TASK_LABEL}`]));
  });
});

describe("a router whose steps are due to end", () => {
  const refused = series(label("", "x"), sample(1));
  const entry = metadata(nested(2, "up"));
  const known = (index: number): Buffer => seriesOf([["a", String(index % 40)]]);
  /** New series, series that came before, refused ones and metadata. */
  const mixed = Buffer.concat(
    Array.from({ length: 200 }, (_, index) => {
      if (index % 17 === 3) return refused;
      if (index % 11 === 5) return Buffer.concat([entry, entry, entry]);
      return index % 3 === 0 ? known(index) : seriesOf([["b", String(index)]]);
    }),
  );
  const seriesReceived = decodeReference(mixed).series.length;
  const metadataFirst = Buffer.concat([entry, entry, entry, mixed]);
  const build = (isDue: () => boolean, shape: RouterShape = {}): Router =>
    routerOf([{ route: AGGREGATION, limits: { maxItems: 20, maxPlainBytes: MIB } }], { ...shape, isDue });
  const never = (): boolean => false;
  const wanted = comparable(routePlain(build(never), metadataFirst));
  /** Says no so many times before each yes. */
  const everyNth = (n: number): (() => boolean) => {
    let asked = 0;
    return () => ++asked % n === 0;
  };

  const shapes = [
    { table: "a roomy table", shape: {}, context: 0 },
    { table: "a table of one series", shape: { tableSeries: 1 }, context: 0 },
    { table: "memory for a few decisions", shape: { tableSeries: 16, tableBytes: 2000 }, context: 0 },
    { table: "decisions that are never kept", shape: {}, context: UNKEPT_CONTEXT },
  ];
  const rows = shapes.flatMap((each) => [1, 2, 7].map((nth) => ({ ...each, nth })));

  it.each(rows)(
    "loses nothing, refuses once and counts exactly, due at each decision number $nth, with $table",
    ({ nth, shape, context }) => {
      const router = build(everyNth(nth), shape);
      const tenants = { context, byRoute: [] };
      for (let time = 1; time <= 3; time++) {
        const { result } = routeCounting(router, metadataFirst, tenants);
        expect(comparable(result)).toBe(wanted);
        const { newSeries, knownSeries } = router.decisionTable;
        expect(newSeries + knownSeries).toBe(time * seriesReceived);
      }
    },
  );

  it("takes a step for every new series, and few for what it knows", () => {
    const plain = Buffer.concat(Array.from({ length: 50 }, (_, index) => known(index)));
    const router = build(() => true);
    expect(routeCounting(router, plain).pauses).toBe(40);
    expect(router.decisionTable).toMatchObject({ newSeries: 40, knownSeries: 10 });
    expect(routeCounting(router, plain).pauses).toBe(0);
    expect(router.decisionTable).toMatchObject({ newSeries: 40, knownSeries: 60 });
  });

  it("takes no more steps than without when it is never due", () => {
    const plain = Buffer.concat(Array.from({ length: 60 }, (_, index) => known(index)));
    expect(routeCounting(build(never), plain).pauses).toBe(0);
    expect(
      routeCounting(
        build(() => true),
        plain,
      ).pauses,
    ).toBeGreaterThan(30);
  });

  it("goes on with a decision of many rules in the steps that follow, while other requests are routed", () => {
    const rules = Array.from({ length: 100 }, (_, index) => set("a", String(index)));
    const route = exampleRoute({ relabel: rulesOf(...rules) });
    const ofRules = (isDue: () => boolean): Router =>
      routerOf([{ route, limits: { maxItems: 20, maxPlainBytes: MIB } }], { isDue });
    const plain = Buffer.concat([entry, seriesOf([["b", "1"]]), refused, seriesOf([["b", "2"]])]);
    const other = seriesOf([["c", "1"]]);
    const router = ofRules(() => true);
    const steps = router.route([compress(new Uint8Array(plain))], NO_TENANTS);
    let pauses = 0;
    let step = steps.next();
    for (; step.done !== true; step = steps.next()) {
      pauses += 1;
      // It takes the engine's memory, and the second of the series is decided there too.
      if (pauses % 50 === 10) routePlain(router, other);
      if (pauses === 120) routePlain(router, seriesOf([["b", "2"]]));
    }
    expect(pauses).toBeGreaterThan(100);
    expect(comparable(withBodies(step.value))).toBe(comparable(routePlain(ofRules(never), plain)));
    expect(routeCounting(router, seriesOf([["b", "1"]])).pauses).toBe(0);
  });

  it("names the first refused series, each once", () => {
    const bad = [0, 1, 2, 3, 4].map((index) => series(label("", String(index)), sample(1)));
    const result = routeCounting(
      build(() => true),
      Buffer.concat(bad),
    ).result;
    expect(result.refusedExamples.map((each) => each.series)).toEqual(['{""="0"}', '{""="1"}', '{""="2"}']);
    expect(result.refused.get("empty_label_name")).toMatchObject({ series: 5, samples: 5 });
  });

  it("refuses a request that is broken behind a step's end as it does otherwise", () => {
    const broken = Buffer.concat([mixed, entry.subarray(0, -1)]);
    const errors = [never, (): boolean => true].map((isDue) =>
      wireErrorOf(() => routePlain(build(isDue), broken)),
    );
    expect(errors[1]).toMatchObject({ code: errors[0]?.code, offset: errors[0]?.offset });
  });
});

describe("metadata without series", () => {
  it("does not make the steps of what comes next short", () => {
    const router = routerOf([{ route: AGGREGATION, limits: ROOMY }]);
    const plain = Buffer.concat(Array.from({ length: 500 }, (_, index) => seriesOf([["a", String(index)]])));
    for (let time = 0; time < 3; time++) routePlain(router, plain);
    expect(routeCounting(router, plain).pauses).toBe(0);
    routePlain(router, metadata(nested(2, "up")));
    expect(routeCounting(router, plain).pauses).toBe(0);
  });

  it("is taken in as few steps as series", () => {
    const router = routerOf([{ route: AGGREGATION, limits: ROOMY }]);
    expect(routeCounting(router, Buffer.alloc(640 * 2, metadata())).pauses).toBeLessThan(10);
  });
});
