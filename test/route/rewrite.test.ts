import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { labelPairs } from "../../src/route/labelText.ts";
import { MERGED_GAP, replaceLabels, RewrittenLabels } from "../../src/route/rewrite.ts";
import { seriesRequest } from "../../src/wire/labelField.ts";
import { TaskLabel } from "../../src/route/taskLabel.ts";
import { NO_SPLICE, type Splice, spliced } from "../../src/wire/splice.ts";
import { decodeReference, type ReferenceLabel, type ReferenceSeries } from "../reference/writeRequest.ts";
import { exemplar, histogram, label, nested, sample, series, varintField } from "../wire/handmade.ts";
import { scanOfOne } from "../wire/scanned.ts";
import type { Pairs } from "./decided.ts";
import { TASK_LABEL } from "./exampleRoute.ts";

interface Rewriting {
  readonly splices: readonly Splice[];
  readonly rewritten: RewrittenLabels;
  /** The message with the splices made. */
  readonly message: Uint8Array;
}

/** @param task written into a label besides; null for none */
function rewrite(plain: Uint8Array, now: Pairs, task: number | null = null): Rewriting {
  const scan = scanOfOne(plain);
  const rewritten = new RewrittenLabels(scan, labelPairs(scan), now);
  const change = task === null ? NO_SPLICE : new TaskLabel(TASK_LABEL).splice(rewritten, task);
  const splices = replaceLabels(scan, rewritten, change);
  return { splices, rewritten, message: spliced(plain.subarray(scan.start, scan.end), ...splices) };
}

/** For where one is enough. */
function theOnly([splice, ...more]: readonly Splice[]): Splice {
  expect(more).toEqual([]);
  return splice ?? NO_SPLICE;
}

function pairwise<T>(items: readonly T[]): (readonly [T, T])[] {
  return items.slice(1).flatMap((item, index) => {
    const before = items[index];
    return before === undefined ? [] : [[before, item] as const];
  });
}

function decoded(plain: Uint8Array): ReferenceSeries {
  const [only] = decodeReference(plain).series;
  if (only === undefined) throw new Error("want a series");
  return only;
}

function latin1(text: string): string {
  return Buffer.from(text).toString("latin1");
}

/** A label as it may come: as all senders write it, with fields that nobody knows, or its value first. */
interface CameLabel {
  readonly name: string;
  readonly value: string;
  readonly field: Uint8Array;
}

const NAMES: readonly string[] = [
  "__name__",
  "a",
  "b",
  "job",
  "instance",
  "zone",
  "é",
  "～",
  "😀",
  "n".repeat(130),
];
const values = fc.oneof(
  fc.constantFrom("", "a", "node", "ünï", "😀", "v".repeat(127), "v".repeat(128), "v".repeat(300)),
  fc.string({ maxLength: 6, unit: "grapheme" }),
);
const cameLabel = fc
  .record({ name: fc.constantFrom(...NAMES), value: values, form: fc.nat(4) })
  .map(({ name, value, form }): CameLabel => {
    const parts = [nested(1, name), nested(2, value)];
    if (form === 1) parts.push(varintField(20, 300));
    if (form === 2) parts.splice(1, 0, nested(21, "between"));
    if (form === 3) parts.reverse();
    if (form === 4) parts.unshift(nested(1, "replaced"), nested(2, "too"));
    return { name, value, field: nested(1, ...parts) };
  });
const cameLabels = fc.uniqueArray(cameLabel, { selector: ({ name }) => name, maxLength: 7 });
const otherFields = fc.array(
  fc.constantFrom(
    sample(1, "7ff0000000000002"),
    sample(-2),
    exemplar(label("job", "exemplar")),
    histogram(varintField(1, 5)),
    varintField(20, 300),
    nested(21, "x"),
    varintField(20, 7),
  ),
  { maxLength: 6 },
);

/** Fields in one order: labels in front, or anywhere. */
const anySeries = fc.tuple(cameLabels, otherFields, fc.boolean()).chain(([labels, others, inFront]) => {
  const fields = [
    ...labels.map((each) => ({ label: each, bytes: each.field })),
    ...others.map((bytes) => ({ label: null, bytes })),
  ];
  const order = fc.shuffledSubarray(fields, { minLength: fields.length });
  return inFront ? fc.constant(fields) : order;
});
/** For each name: take the label away, leave it, or give it a value. */
const changes = fc.record({
  fate: fc.tuple(...NAMES.map(() => fc.constantFrom("leave", "leave", "remove", "set"))),
  value: fc.tuple(...NAMES.map(() => values)),
  order: fc.constantFrom("came", "sorted", "reversed"),
});

describe("any series that is given other labels", () => {
  /** What a series came as, and the labels that it is to have. */
  const cases = fc.tuple(anySeries, changes).map(([fields, { fate, value, order }]) => {
    const came = fields.flatMap((field) => (field.label === null ? [] : [field.label]));
    const others = fields.flatMap((field) => (field.label === null ? [field.bytes] : []));
    const left = came.filter(({ name }) => fate[NAMES.indexOf(name)] !== "remove");
    const changed: [string, string][] = left.map(({ name, value: was }) => {
      const at = NAMES.indexOf(name);
      return [name, fate[at] === "set" ? (value[at] ?? "") : was];
    });
    NAMES.forEach((name, at) => {
      const isNew = came.every((each) => each.name !== name);
      if (isNew && fate[at] === "set") changed.push([name, value[at] ?? ""]);
    });
    if (order === "sorted") changed.sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    if (order === "reversed") changed.reverse();
    return { plain: series(...fields.map(({ bytes }) => bytes)), came, others, now: changed };
  });

  it("has exactly these, and all else as it came", () => {
    fc.assert(
      fc.property(cases, ({ plain, now }) => {
        const before = decoded(plain);
        const unknownIn = new Map(
          before.labels.map(([name, value, unknown]) => [`${name}\0${value}`, unknown]),
        );
        const labels = now.map(([name, value]): ReferenceLabel => {
          const unknown = unknownIn.get(`${latin1(name)}\0${latin1(value)}`);
          const pair = [latin1(name), latin1(value)] as const;
          return unknown === undefined ? pair : [...pair, unknown];
        });
        expect(decoded(seriesRequest(rewrite(plain, now).message))).toEqual({ ...before, labels });
      }),
      { numRuns: 500 },
    );
  });

  it("keeps the bytes of unchanged labels, and of the other fields in their order", () => {
    fc.assert(
      fc.property(cases, ({ plain, came, others, now }) => {
        const fields = now.map(
          ([name, value]) =>
            came.find((each) => each.name === name && each.value === value)?.field ?? label(name, value),
        );
        expect(Buffer.from(rewrite(plain, now).message)).toEqual(Buffer.concat([...fields, ...others]));
      }),
      { numRuns: 500 },
    );
  });

  it("gets a task label in the same go as if it were put in afterwards", () => {
    const tasks = fc.record({ task: fc.nat(200), had: fc.option(fc.nat({ max: 12 })) });
    fc.assert(
      fc.property(cases, tasks, ({ plain, now }, { task, had }) => {
        // With a task label among the new ones, anywhere.
        const labels = had === null ? now : now.toSpliced(had, 0, [TASK_LABEL, "old"]);
        const { rewritten, message } = rewrite(plain, labels, task);
        const behind = rewrite(plain, labels).message.subarray(rewritten.bytes.length);
        const splice = new TaskLabel(TASK_LABEL).splice(rewritten, task);
        const wanted = Buffer.concat([spliced(rewritten.bytes, splice), behind]);
        expect(Buffer.from(message)).toEqual(wanted);
      }),
      { numRuns: 500 },
    );
  });

  it("is told where its labels are among the new bytes", () => {
    fc.assert(
      fc.property(cases, ({ plain, now }) => {
        const { rewritten } = rewrite(plain, now);
        expect(labelPairs(rewritten)).toEqual(now);
        expect(rewritten).toMatchObject({ count: now.length, labelsFound: now.length });
        const ends = [0, ...now.map((_, at) => rewritten.fields[at * 2 + 1])];
        expect(now.map((_, at) => rewritten.fields[at * 2])).toEqual(ends.slice(0, -1));
        expect(ends.at(-1)).toBe(rewritten.bytes.length);
      }),
      { numRuns: 300 },
    );
  });
});

describe("what is told of the difference", () => {
  const labels: Pairs = [
    ["__name__", "http_requests_total"],
    ["instance", "10.0.0.1:9100"],
    ["job", "node"],
    ["path", "/api/v1/write"],
    ["zone", "eu"],
  ];
  const plainOf = (pairs: Pairs): Buffer =>
    series(...pairs.map(([name, value]) => label(name, value)), sample(1));
  const plain = plainOf(labels);
  const places = [0, 1, 2, 3, 4, 5];

  it.each(places)("is the field of a label that is added: at %i", (at) => {
    const added = ["more", "x".repeat(20)] as const;
    const splice = theOnly(rewrite(plain, labels.toSpliced(at, 0, added)).splices);
    expect(splice.inserted).toHaveLength(label(...added).length);
    expect(splice.resume).toBe(splice.keep);
  });

  it.each(places.slice(0, -1))("is nothing but its place when a label is removed: at %i", (at) => {
    const [name = "", value = ""] = labels[at] ?? [];
    const splice = theOnly(rewrite(plain, labels.toSpliced(at, 1)).splices);
    expect(splice.inserted).toHaveLength(0);
    expect(splice.resume - splice.keep).toBe(label(name, value).length);
  });

  it.each(places.slice(0, -1))("is no more than the field of a label that changes: at %i", (at) => {
    const [name = "", value = ""] = labels[at] ?? [];
    const splice = theOnly(rewrite(plain, labels.toSpliced(at, 1, [name, "other than before"])).splices);
    expect(splice.inserted.length).toBeGreaterThan(0);
    expect(splice.inserted.length).toBeLessThanOrEqual(label(name, "other than before").length);
    expect(splice.resume - splice.keep).toBeLessThanOrEqual(label(name, value).length);
  });

  it("is one byte where a value differs by one", () => {
    const splice = theOnly(rewrite(plain, labels.toSpliced(2, 1, ["job", "nose"])).splices);
    expect(Buffer.from(splice.inserted).toString()).toBe("s");
    expect(splice.resume - splice.keep).toBe(1);
  });

  it("leaves out what lies between two changes, if that is more than a splice costs", () => {
    const after = labels.toSpliced(0, 1, ["__name__", "http_requests"]).toSpliced(4, 1, ["zone", "us"]);
    const { splices } = rewrite(plain, after, 7);
    expect(splices).toHaveLength(2);
    const inserted = splices.reduce((sum, splice) => sum + splice.inserted.length, 0);
    const changed = [label("__name__", "http_requests"), label(TASK_LABEL, "7"), label("zone", "us")];
    expect(inserted).toBeLessThanOrEqual(Buffer.concat(changed).length);
    const near = labels
      .toSpliced(2, 1, ["job", "n"])
      .toSpliced(4, 1, ["zone", "us"])
      .toSpliced(3, 1, ["p", ""]);
    for (const [first, second] of pairwise(rewrite(plain, near, 7).splices)) {
      expect(second.keep - first.resume).toBeGreaterThanOrEqual(MERGED_GAP);
    }
  });

  it("is nothing when the labels are those that came", () => {
    expect(rewrite(plain, labels).splices).toEqual([]);
    expect(Buffer.from(seriesRequest(rewrite(plain, labels).message))).toEqual(plain);
  });

  it("lies within the labels that the series begins with, so that it holds whatever items follow", () => {
    const after = labels.toSpliced(4, 1, ["zone", "us"], ["zoom", "1"]);
    const once = theOnly(rewrite(plain, after).splices);
    const fields = labels.map(([name, value]) => label(name, value));
    expect(once.resume).toBeLessThanOrEqual(Buffer.concat(fields).length);
    expect(rewrite(series(...fields, exemplar(), histogram(), sample(5)), after).splices).toEqual([once]);
    expect(rewrite(series(...fields), after).splices).toEqual([once]);
  });

  it("is of a copy: it outlives the bytes that it was made of", () => {
    const short = Buffer.from(plain);
    const splice = theOnly(rewrite(short, [["a", "1"], ...labels.toReversed()]).splices);
    const before = Buffer.from(splice.inserted);
    short.fill(0);
    expect(Buffer.from(splice.inserted)).toEqual(before);
  });
});

describe("a series whose labels are not all in front", () => {
  const labelsOf = (message: Uint8Array): readonly ReferenceLabel[] => decoded(seriesRequest(message)).labels;

  it.each([
    { name: "behind the samples", plain: series(sample(1), label("a", "1"), label("b", "2")) },
    { name: "on both sides of a sample", plain: series(label("a", "1"), sample(1), label("b", "2")) },
    { name: "behind an unknown field", plain: series(nested(21, "x"), label("a", "1"), label("b", "2")) },
  ])("gets the new ones in front of all else: $name", ({ plain }) => {
    const { message } = rewrite(plain, [
      ["a", "9"],
      ["b", "2"],
      ["c", "3"],
    ]);
    expect(labelsOf(message)).toEqual([
      ["a", "9"],
      ["b", "2"],
      ["c", "3"],
    ]);
    const inFront = Buffer.concat([label("a", "9"), label("b", "2"), label("c", "3")]);
    expect(Buffer.from(message).subarray(0, inFront.length)).toEqual(inFront);
  });

  it("without labels gets them in front", () => {
    const { message, splices } = rewrite(series(sample(1)), [["a", "1"]]);
    expect(Buffer.from(message)).toEqual(Buffer.concat([label("a", "1"), sample(1)]));
    expect(theOnly(splices)).toMatchObject({ keep: 0, resume: 0 });
  });
});
