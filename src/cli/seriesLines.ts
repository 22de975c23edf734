/** Reads label sets from a file, one `{"labels":[["__name__","up"],...]}` a line. */
import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";

export type Labels = readonly (readonly [name: string, value: string])[];

export interface SeriesLine {
  /** As `series.ndjson:2`, for messages. */
  readonly place: string;
  readonly labels: Labels;
}

/**
 * The label sets in the order of the file; empty lines are passed over.
 *
 * @throws {SyntaxError} naming the line that cannot be read
 */
export async function* readSeriesLines(file: string): AsyncGenerator<SeriesLine> {
  let number = 0;
  for await (const line of createInterface({
    input: createReadStream(file),
    crlfDelay: Number.POSITIVE_INFINITY,
  })) {
    number += 1;
    const place = `${file}:${number}`;
    if (line.trim() !== "") yield { place, labels: parseSeriesLine(line, place) };
  }
}

function parseSeriesLine(line: string, place: string): Labels {
  let parsed: unknown;
  try {
    parsed = JSON.parse(line);
  } catch (cause) {
    throw new SyntaxError(`${place}: not JSON: ${(cause as Error).message}`, { cause });
  }
  const labels: unknown =
    typeof parsed === "object" && parsed !== null && "labels" in parsed ? parsed.labels : undefined;
  if (!Array.isArray(labels) || !labels.every(isPair)) {
    throw new SyntaxError(`${place}: want {"labels":[["name","value"],...]}, got ${line.slice(0, 100)}`);
  }
  return labels;
}

function isPair(value: unknown): value is [string, string] {
  return Array.isArray(value) && value.length === 2 && value.every((text) => typeof text === "string");
}
