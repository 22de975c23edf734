/** The router, on the engine, against the oracle: the same parcels, counts and refusals for whatever comes. */
import fc from "fast-check";
import { compress } from "snappyjs";
import { describe, expect, it } from "vitest";
import type { LabelLimits, ParcelLimits, RouteOptions } from "../../src/route/options.ts";
import type { RequestTenants } from "../../src/route/tenants.ts";
import { Random } from "../fuzz/random.ts";
import { Splitter } from "../oracle/split.ts";
import { routingDifference } from "../oracle/routingDifference.ts";
import { GLOBAL_RULES, NAMED_TENANTS, RULED_ROUTES, SEVERAL_TENANTS } from "../oracle/ruledRoutes.ts";
import { exampleRoute, NO_RULES, slotsOf, TASK_LABEL } from "../route/exampleRoute.ts";
import { LABEL_LIMITS, MIB, NO_TENANTS, routerOf, type RouterShape } from "../route/routed.ts";
import {
  exemplar,
  fixed32Field,
  histogram,
  label,
  metadata,
  nested,
  sample,
  series,
  tag,
  varint,
  varintField,
} from "../wire/handmade.ts";
import { plainRequests } from "../wire/plainRequests.ts";

const MAX_PLAIN_BYTES = 32 * MIB;
const ROOMY: ParcelLimits = { maxItems: 10_000, maxPlainBytes: 8 * MIB };
const ROUTES = [
  exampleRoute(),
  exampleRoute({
    name: "archive",
    tasks: null,
    placement: { key: { kind: "all" }, algorithm: "jump", missingKey: "one_place", replicas: 1 },
    upstreams: slotsOf("old-0", "old-1"),
  }),
  exampleRoute({
    name: "by-job",
    placement: {
      key: { kind: "by", names: ["job"] },
      algorithm: "jump",
      missingKey: "one_place",
      replicas: 1,
    },
  }),
];

interface Setting extends RouterShape {
  readonly limits?: ParcelLimits;
  readonly labels?: LabelLimits;
  readonly routes?: readonly RouteOptions[];
  /** Whose requests come, one after another and again. */
  readonly tenants?: readonly RequestTenants[];
}

/** Routes plain requests one after another through one router, and names the first that differs from the oracle's. */
function differences(plains: readonly Uint8Array[], setting: Setting = {}): string[] {
  const { limits = ROOMY, labels = LABEL_LIMITS, tenants = [], globalRules = NO_RULES } = setting;
  const routes = (setting.routes ?? ROUTES).map((route) => ({ route, limits }));
  const router = routerOf(routes, { ...setting, metadata: limits });
  const oracle = new Splitter(globalRules, routes, labels, limits);
  return plains.flatMap((plain, index) => {
    const block = compress(new Uint8Array(plain));
    const whose = tenants[index % tenants.length] ?? NO_TENANTS;
    const difference = routingDifference(router, oracle, block, MAX_PLAIN_BYTES, whose);
    return difference === null ? [] : [`request ${index}: ${difference}`];
  });
}

const TABLES: readonly { readonly table: string; readonly shape: RouterShape }[] = [
  { table: "a roomy table", shape: {} },
  { table: "a table of one series", shape: { tableSeries: 1 } },
  { table: "a table whose generations turn over all the time", shape: { tableSeries: 40 } },
  { table: "a table with memory for a few decisions only", shape: { tableSeries: 16, tableBytes: 2000 } },
];

describe("recorded requests", () => {
  const plains = plainRequests().map(({ plain }) => plain);
  const limits = [ROOMY, { maxItems: 3, maxPlainBytes: 500 }];
  const rows = TABLES.flatMap(({ table, shape }) => limits.map((each) => ({ table, shape, limits: each })));

  it.each(rows)("come to the same cold and warm, with $table and $limits", ({ shape, limits: each }) => {
    expect(differences([...plains, ...plains], { ...shape, limits: each })).toEqual([]);
  });
});

const text = fc.oneof(
  fc.constantFrom("__name__", "job", "instance", TASK_LABEL, "stream_task_j", "a", "～", "😀", ""),
  fc.string({ maxLength: 12, unit: "binary" }),
);
const labels = fc
  .array(fc.tuple(text, text), { maxLength: 6 })
  .map((pairs) => pairs.map(([n, v]) => label(n, v)));
const items = fc.array(
  fc.constantFrom(
    sample(1_796_028_524_780),
    sample(-1, "7ff0000000000002"),
    nested(2, varintField(2, 5)),
    nested(2),
    exemplar(),
    exemplar(label("trace", "é")),
    exemplar(label("trace", Buffer.from([0xff]))),
    histogram(),
    histogram(nested(9, Buffer.from([1, 2])), varintField(9, 3)),
    varintField(20, 300),
    fixed32Field(21),
  ),
  { maxLength: 5 },
);
const late = fc.option(
  fc.tuple(text, text).map(([name, value]) => label(name, value)),
  { freq: 4 },
);
const anySeries = fc
  .tuple(labels, items, late, items)
  .map(([front, some, behind, more]) =>
    series(...front, ...some, ...(behind === null ? [] : [behind]), ...more),
  );
const anyField = fc.oneof(
  { arbitrary: anySeries, weight: 12 },
  {
    arbitrary: fc.constantFrom(metadata(nested(2, "up")), metadata(nested(4, Buffer.from([0xff])))),
    weight: 1,
  },
  { arbitrary: fc.constantFrom(varintField(9, 1), nested(10, "x")), weight: 1 },
);
const limits = fc.record({
  maxItems: fc.integer({ min: 1, max: 6 }),
  maxPlainBytes: fc.integer({ min: 1, max: 300 }),
});
const narrow = { maxLabels: 4, maxLabelNameBytes: 8, maxLabelValueBytes: 10 };

describe("made-up requests", () => {
  it.each(TABLES)("come to the same, several in a row and repeated, with $table", ({ shape }) => {
    fc.assert(
      fc.property(
        fc.array(fc.array(anyField, { maxLength: 8 }), { minLength: 1, maxLength: 6 }),
        limits,
        fc.constantFrom(LABEL_LIMITS, narrow),
        (requests, parcelLimits, labelLimits) => {
          const plains = requests.map((fields) => Buffer.concat(fields));
          const setting = { ...shape, limits: parcelLimits, labels: labelLimits };
          expect(differences([...plains, ...plains], setting)).toEqual([]);
        },
      ),
      { numRuns: 60 },
    );
  });
});

const RULED: Setting = {
  globalRules: GLOBAL_RULES,
  routes: RULED_ROUTES,
  tenants: SEVERAL_TENANTS,
};

/** Whether a step is due to end: never, now and then, or after each decision. */
const DUE: readonly { readonly due: string; readonly isDue: () => () => boolean }[] = [
  { due: "never", isDue: () => () => false },
  {
    due: "now and then",
    isDue: () => {
      const random = new Random(20260101);
      return () => random.once(4);
    },
  },
  { due: "always", isDue: () => () => true },
];

describe("made-up requests of several tenants, with rules everywhere", () => {
  const ruledLabel = fc.record({
    name: fc.constantFrom("__name__", "a", "instance", "job", TASK_LABEL, "tenant", "～", "😀"),
    value: fc.constantFrom("job", "instance", "abc", "abcdefg", "x", "d", ""),
  });
  /** Series that nothing at the door is against, but some limits. */
  const ruledSeries = fc
    .tuple(fc.uniqueArray(ruledLabel, { selector: ({ name }) => name, maxLength: 6 }), items)
    .map(([each, some]) => series(...each.map(({ name, value }) => label(name, value)), ...some));
  const ruledField = fc.oneof({ arbitrary: ruledSeries, weight: 3 }, { arbitrary: anyField, weight: 1 });
  const tight = { maxLabels: 5, maxLabelNameBytes: 14, maxLabelValueBytes: 7 };
  const rows = TABLES.flatMap(({ table, shape }) => DUE.map((each) => ({ table, shape, ...each })));

  it.each(rows)("come to the same with $table, steps due $due", ({ shape, isDue }) => {
    fc.assert(
      fc.property(
        fc.array(fc.array(ruledField, { maxLength: 8 }), { minLength: 1, maxLength: 5 }),
        limits,
        fc.constantFrom(LABEL_LIMITS, tight),
        (requests, parcelLimits, labelLimits) => {
          const plains = requests.map((fields) => Buffer.concat(fields));
          const setting = { ...RULED, ...shape, limits: parcelLimits, labels: labelLimits };
          // Each request as several tenants, and as the same ones again.
          const times = [...plains, ...plains, ...plains];
          expect(differences(times, { ...setting, isDue: isDue() })).toEqual([]);
        },
      ),
      { numRuns: 30 },
    );
  });

  it("reach every kind of outcome", () => {
    const routes = RULED_ROUTES.map((route) => ({ route, limits: ROOMY }));
    const oracle = new Splitter(GLOBAL_RULES, routes, tight, ROOMY);
    const seen = new Set<string>();
    for (const fields of fc.sample(fc.array(ruledSeries, { maxLength: 8 }), 300)) {
      for (const { byRoute } of NAMED_TENANTS) {
        const { tallies, consignments } = oracle.split(Buffer.concat(fields), byRoute);
        for (const { tally } of tallies) {
          seen.add("reason" in tally ? tally.reason : tally.kind);
        }
        for (const { route } of consignments) seen.add(`sent by ${route}`);
      }
    }
    const every = [
      ...["relabel_configs", "no_route", "not_selected", "missing_key_labels", "write_relabel_configs"],
      ...["no_labels", "no_metric_name", "too_many_labels", "empty_label_name", "label_value_too_long"],
      ...[0, 1, 2, 3].map((route) => `sent by ${route}`),
    ];
    expect(every.filter((each) => !seen.has(each))).toEqual([]);
  });
});

describe("recorded requests of several tenants, with rules everywhere", () => {
  const plains = plainRequests().map(({ plain }) => plain);
  const rows = TABLES.slice(0, 3).map(({ table, shape }) => ({ table, shape }));

  it.each(rows)("come to the same with $table, steps due once in a while", ({ shape }) => {
    const random = new Random(20260102);
    const setting = { ...RULED, ...shape, isDue: () => random.once(100) };
    expect(differences([...plains, ...plains], setting)).toEqual([]);
  });
});

describe("requests at a border", () => {
  const lengths = [2 ** 7, 2 ** 14, 2 ** 21].flatMap((border) =>
    [-40, -27, -26, -25, -24, -3, -2, -1, 0, 1].map((off) => border + off),
  );
  const filled = (bytes: number): Buffer =>
    series(label("a", "1"), nested(20, new Uint8Array(Math.max(0, bytes - 12))));

  it("of a length's varint, before and after the task label, come to the same", () => {
    expect(differences(lengths.map(filled))).toEqual([]);
  });

  it("of the label fields' varint come to the same", () => {
    const values = [100, 120, 121, 122, 123, 124, 125, 126, 127, 128, 129, 16_380, 16_384, 65_000];
    const plains = values.map((bytes) => series(label("a", "x".repeat(bytes)), sample(1), label("b", "2")));
    const sorted = values.map((bytes) => series(label("a", "x".repeat(bytes)), sample(1)));
    expect(differences([...plains, ...sorted, ...sorted])).toEqual([]);
  });

  const tooLong = 5 * MIB;
  it.each([
    { name: "one series longer than a step", plain: filled(tooLong) },
    {
      name: "short series, one longer than a step, short ones",
      plain: Buffer.concat([filled(100), filled(200), filled(tooLong), filled(100), filled(4096)]),
    },
    {
      name: "many series whose fields a step's end cuts anywhere",
      plain: Buffer.concat(Array.from({ length: 3000 }, (_, index) => filled(3000 + (index % 13)))),
    },
    {
      name: "more series than a step takes",
      plain: Buffer.concat(Array.from({ length: 9000 }, (_, index) => series(label("n", String(index))))),
    },
    {
      name: "more metadata entries than a step takes",
      plain: Buffer.concat(Array.from({ length: 9000 }, () => metadata(nested(2, "up")))),
    },
    {
      name: "a good beginning longer than a step and a broken end",
      plain: Buffer.concat([filled(tooLong), filled(100).subarray(0, 50)]),
    },
    { name: "a long run of unknown fields", plain: Buffer.alloc(6 * MIB, varintField(9, 1)) },
    {
      name: "a prefix that is cut at the end",
      plain: Buffer.concat([filled(10), tag(1, 2), Buffer.from([0x80])]),
    },
    { name: "a length beyond 32 bits", plain: Buffer.concat([tag(1, 2), varint(2n ** 34n)]) },
    { name: "nothing", plain: Buffer.alloc(0) },
  ])(
    "of a step come to the same: $name",
    ({ plain }) => {
      for (const each of [ROOMY, { maxItems: 7, maxPlainBytes: MIB }]) {
        expect(differences([plain, plain], { limits: each })).toEqual([]);
      }
    },
    60_000,
  );
});
