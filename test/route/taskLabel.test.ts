import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { TaskLabel } from "../../src/route/taskLabel.ts";
import { seriesRequest } from "../../src/wire/labelField.ts";
import { spliced } from "../../src/wire/splice.ts";
import { decodeReference, type ReferenceSeries } from "../reference/writeRequest.ts";
import { exemplar, histogram, label, nested, sample, series, varintField } from "../wire/handmade.ts";
import { scanOfOne } from "../wire/scanned.ts";
import { TASK_LABEL } from "./exampleRoute.ts";

function withTask(plain: Uint8Array, task: number, name = TASK_LABEL): Buffer {
  const scan = scanOfOne(plain);
  const message = plain.subarray(scan.start, scan.end);
  return Buffer.from(seriesRequest(spliced(message, new TaskLabel(name).splice(scan, task))));
}

function decoded(plain: Uint8Array): ReferenceSeries {
  const [only] = decodeReference(plain).series;
  if (only === undefined) throw new Error("want a series");
  return only;
}

/** Names after labelling, of a series with these names in this order. */
function namesAfter(names: readonly string[], name = TASK_LABEL): string[] {
  const plain = series(...names.map((each) => label(each, "x")), sample(1));
  return decoded(withTask(plain, 7, name)).labels.map(([each]) => Buffer.from(each, "latin1").toString());
}

describe("the task label's place", () => {
  const rows = [
    { name: "among sorted labels", before: ["a", "job", "zone"], after: ["a", "job", TASK_LABEL, "zone"] },
    { name: "in front", before: ["t", "zone"], after: [TASK_LABEL, "t", "zone"] },
    { name: "at the end", before: ["a", "job"], after: ["a", "job", TASK_LABEL] },
    { name: "alone", before: [], after: [TASK_LABEL] },
    {
      name: "between a name that it begins with and one that begins with it",
      before: ["stream_task", "stream_task_id_x"],
      after: ["stream_task", TASK_LABEL, "stream_task_id_x"],
    },
    {
      name: "after names of upper case, which come first bytewise",
      before: ["Zone", "__name__", "job"],
      after: ["Zone", "__name__", "job", TASK_LABEL],
    },
    {
      name: "before names that are not ASCII",
      before: ["a", "ünï", "～", "😀"],
      after: ["a", TASK_LABEL, "ünï", "～", "😀"],
    },
    {
      name: "before the first greater name of unsorted labels, which keep their order",
      before: ["zone", "a", "x", "job"],
      after: [TASK_LABEL, "zone", "a", "x", "job"],
    },
    {
      name: "before the first greater name in the middle of unsorted labels",
      before: ["job", "a", "zone", "b"],
      after: ["job", "a", TASK_LABEL, "zone", "b"],
    },
  ];
  it.each(rows)("is $name", ({ before, after }) => {
    expect(namesAfter(before)).toEqual(after);
  });

  it("is that of its own name when it has another one", () => {
    expect(namesAfter(["a", "é", "～", "😀"], "～b")).toEqual(["a", "é", "～", "～b", "😀"]);
  });
});

describe("a task label that came in", () => {
  const others = ["a", "job", "zone"];
  const orders = [others, ["zone", "job", "a"]];
  const rows = orders.flatMap((names) =>
    [0, 1, 2, 3].map((at) => ({ names, at, before: names.toSpliced(at, 0, TASK_LABEL) })),
  );

  it.each(rows)(
    "is overwritten, and the label stands where it would without it: $before",
    ({ names, before }) => {
      expect(namesAfter(before)).toEqual(namesAfter(names));
    },
  );

  it("is overwritten when it is the only label", () => {
    const labelled = decoded(withTask(series(label(TASK_LABEL, "99")), 7));
    expect(labelled.labels).toEqual([[TASK_LABEL, "7"]]);
  });

  it("is overwritten with the unknown fields in it, and wherever its name is found", () => {
    const odd = nested(1, varintField(20, 1), nested(1, "x"), nested(2, "99"), nested(1, TASK_LABEL));
    const plain = series(label("a", "1"), sample(1), odd, sample(2), label("zone", "2"));
    expect(decoded(withTask(plain, 7)).labels).toEqual([
      ["a", "1"],
      [TASK_LABEL, "7"],
      ["zone", "2"],
    ]);
  });
});

describe("the task label's value", () => {
  it.each([0, 9, 127, 2 ** 31 - 2])("is the task in decimal digits: %i", (task) => {
    expect(decoded(withTask(series(), task)).labels).toEqual([[TASK_LABEL, String(task)]]);
  });
});

const names = fc.oneof(
  fc.string({ maxLength: 6, unit: "binary" }),
  fc.constantFrom(
    "stream_task",
    "stream_task_ie",
    "stream_task_id_",
    "STREAM",
    "～",
    "😀",
    "__name__",
    "job",
  ),
);
const labelFields = fc
  .uniqueArray(fc.oneof(names, fc.constant(TASK_LABEL)), { maxLength: 8 })
  .map((each) => each.map((name) => label(name, "x")));
const otherFields = fc.array(
  fc.constantFrom(
    sample(1, "7ff0000000000002"),
    sample(-2),
    exemplar(label(TASK_LABEL, "exemplar")),
    histogram(varintField(1, 5)),
    varintField(20, 300),
    nested(21, "x"),
  ),
  { maxLength: 6 },
);
/** Labels and other fields in any order. */
const anySeries = fc
  .tuple(labelFields, otherFields)
  .chain(([labels, others]) =>
    fc.shuffledSubarray([...labels, ...others], { minLength: labels.length + others.length }),
  )
  .map((fields) => series(...fields));

describe("any series", () => {
  it("has exactly one task label before the first greater name, and is otherwise what it was", () => {
    fc.assert(
      fc.property(anySeries, fc.nat(200), (plain, task) => {
        const before = decoded(plain);
        const after = decoded(withTask(plain, task));
        const kept = before.labels.filter(([name]) => name !== TASK_LABEL);
        // latin1 text of UTF-8 orders as the bytes do.
        const greater = kept.findIndex(([name]) => name > TASK_LABEL);
        const expected = kept.toSpliced(greater < 0 ? kept.length : greater, 0, [TASK_LABEL, String(task)]);
        expect(after).toEqual({ ...before, labels: expected });
      }),
      { seed: 1, numRuns: 2000 },
    );
  });

  it("stays as it is when it gets the same task label again", () => {
    fc.assert(
      fc.property(anySeries, fc.nat(200), (plain, task) => {
        const once = withTask(plain, task);
        expect(withTask(once, task).toString("hex")).toBe(once.toString("hex"));
      }),
      { seed: 1, numRuns: 1000 },
    );
  });

  it("keeps the bytes of its other fields", () => {
    const before = [label("zone", "é"), sample(1, "7ff0000000000002"), varintField(20, 1), label("a", "x")];
    const expected = series(label(TASK_LABEL, "7"), ...before);
    expect(withTask(series(...before), 7).toString("hex")).toBe(expected.toString("hex"));
  });
});
