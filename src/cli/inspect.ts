/** `inspect`: shows the captured body of a write request to a person, or as JSON to a program. */
import { readFileSync } from "node:fs";
import { type Capture, CaptureError, readCapture } from "./capture.ts";
import { request2Json, writeRequestJson } from "./captureJson.ts";
import {
  metadataLines,
  type RequestView,
  seriesLines,
  unknownLines,
  viewRequest2,
  viewWriteRequest,
} from "./captureText.ts";
import { grouped, printable } from "./printable.ts";

export interface InspectOptions {
  /** One JSON document with everything in it instead of text. */
  readonly json: boolean;
  /** How many series, and how many metadata entries, are shown as text; 0 for all. */
  readonly limit: number;
}

/**
 * Shows a file.
 *
 * @returns exit code 0
 * @throws {SyntaxError} when the file is no write request, naming the byte where that shows, or an option makes no sense
 * @throws the system's error when the file cannot be read
 */
export function inspect(file: string, options: InspectOptions, print: (line: string) => void): number {
  if (!Number.isSafeInteger(options.limit) || options.limit < 0) {
    throw new SyntaxError("--limit: want how many series to show, 0 for all");
  }
  const body = readFileSync(file);
  const capture = readNamedCapture(file, body);
  const lines = options.json ? [jsonOf(capture)] : textOf(file, body.length, capture, options.limit);
  for (const line of lines) print(line);
  return 0;
}

function readNamedCapture(file: string, body: Uint8Array): Capture {
  try {
    return readCapture(body);
  } catch (error) {
    if (!(error instanceof CaptureError)) throw error;
    throw new CaptureError(error.code, `${printable(file)}: ${error.message}`, error);
  }
}

function jsonOf(capture: Capture): string {
  return JSON.stringify(
    capture.version === "1.0" ? writeRequestJson(capture.request) : request2Json(capture.request),
  );
}

function textOf(file: string, bodyBytes: number, capture: Capture, limit: number): string[] {
  const view = capture.version === "1.0" ? viewWriteRequest(capture.request) : viewRequest2(capture.request);
  const refused = capture.version === "1.0" ? capture.malformed : null;
  return [
    `${printable(file)}: remote write ${capture.version}, ${sizeText(capture, bodyBytes)}`,
    countsText(view),
    ...(refused === null ? [] : [`the gateway refuses this request: ${refused}`]),
    ...unknownLines(view, ""),
    "",
    ...shown(view.series, limit, seriesLines, "series"),
    ...(view.metadata.length === 0 ? [] : ["metadata:"]),
    ...shown(view.metadata, limit, metadataLines, "metadata entries"),
  ];
}

function sizeText({ compression, plain }: Capture, bodyBytes: number): string {
  return compression === "snappy"
    ? `snappy block of ${grouped(bodyBytes)} bytes, ${grouped(plain.length)} bytes plain`
    : `not compressed, ${grouped(plain.length)} bytes`;
}

function countsText({ series, metadata }: RequestView): string {
  const count = (items: "samples" | "histograms" | "exemplars"): string =>
    `${grouped(series.reduce((sum, one) => sum + one[items].length, 0))} ${items}`;
  const items = `${count("samples")}, ${count("histograms")}, ${count("exemplars")}`;
  return `${grouped(series.length)} series with ${items}; ${grouped(metadata.length)} metadata entries`;
}

function shown<Item>(
  items: readonly Item[],
  limit: number,
  linesOf: (item: Item) => string[],
  name: string,
): string[] {
  const first = limit === 0 ? items : items.slice(0, limit);
  const more = items.length - first.length;
  return [
    ...first.flatMap(linesOf),
    ...(more === 0 ? [] : [`… ${grouped(more)} more ${name}, --limit 0 shows all`]),
  ];
}
