/** The series that a plan is made over: from a file of label sets, or from recorded requests. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { SampledSeries, SampleState } from "../route/liveSample.ts";
import type { Tenant } from "../route/tenants.ts";
import { encodeLabelField } from "../wire/labelField.ts";
import { type Capture, CaptureError, readCapture } from "./capture.ts";
import { readSeriesLines } from "./seriesLines.ts";

/** What a request's header says, by its name in lower case. */
export type NamedTenants = ReadonlyMap<string, Tenant>;

type Text = Uint8Array | readonly number[];

const encoder = new TextEncoder();

/** Every distinct series once. */
class DistinctSeries {
  readonly #series = new Map<string, SampledSeries>();
  readonly #tenants: NamedTenants;

  constructor(tenants: NamedTenants) {
    this.#tenants = tenants;
  }

  add(labels: readonly (readonly [name: Text, value: Text])[]): void {
    const fields = labels.map(([name, value]) =>
      encodeLabelField(Uint8Array.from(name), Uint8Array.from(value)),
    );
    const bytes = Buffer.concat(fields);
    this.#series.set(bytes.toString("latin1"), { labels: bytes, tenants: this.#tenants });
  }

  /** As a sample that holds all there is. */
  get all(): SampleState {
    const series = [...this.#series.values()];
    return { isExact: true, fraction: 1, known: { value: series.length, standardError: 0 }, series };
  }
}

/** No series at all. */
export function noSeries(): SampleState {
  return new DistinctSeries(new Map()).all;
}

/**
 * Series of a file, one `{"labels":[["__name__","up"],...]}` a line.
 *
 * @throws {SyntaxError} naming the line that cannot be read
 */
export async function seriesOfFile(file: string, tenants: NamedTenants): Promise<SampleState> {
  const distinct = new DistinctSeries(tenants);
  for await (const { labels } of readSeriesLines(file)) {
    distinct.add(labels.map(([name, value]) => [encoder.encode(name), encoder.encode(value)]));
  }
  return distinct.all;
}

/**
 * Series of all files in a folder that are bodies of write requests; others are passed over, which is told.
 *
 * @throws {SyntaxError} when none is
 */
export function seriesOfRequests(
  folder: string,
  tenants: NamedTenants,
  complain: (line: string) => void,
): SampleState {
  const distinct = new DistinctSeries(tenants);
  const files = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isFile());
  const others: string[] = [];
  for (const { name } of files.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    try {
      addRequest(distinct, readCapture(readFileSync(join(folder, name))));
    } catch (error) {
      if (!(error instanceof CaptureError)) throw error;
      others.push(`${name}: ${error.message}`);
    }
  }
  if (others.length === files.length)
    throw new SyntaxError(`${folder}: want bodies of write requests in it; there are none`);
  const [first] = others;
  if (first !== undefined) {
    const counts = `${others.length} of ${files.length} files`;
    complain(`${folder}: passes over ${counts}, which are no bodies of write requests, such as ${first}`);
  }
  return distinct.all;
}

function addRequest(distinct: DistinctSeries, capture: Capture): void {
  if (capture.version === "1.0") {
    for (const { labels } of capture.request.timeseries) {
      distinct.add(labels.map(({ name, value }) => [name, value]));
    }
    return;
  }
  const { symbols, timeseries } = capture.request;
  for (const { labels_refs: references } of timeseries) {
    const texts = references.map((reference) => symbols[reference] ?? []);
    const pairs = texts.flatMap((name, at): [Text, Text][] =>
      at % 2 === 0 ? [[name, texts[at + 1] ?? []]] : [],
    );
    distinct.add(pairs);
  }
}
