/** POST /api/v1/explain: the series that is asked about, as JSON. */
import { parseMoment, WANT_MOMENT } from "../moment.ts";
import type { Label } from "../relabel/rules.ts";
import { parseSeriesText } from "./seriesText.ts";

export interface ExplainRequest {
  readonly labels: readonly Label[];
  /** What the request's header would say, to routes that look at it. */
  readonly tenant: string | null;
  /** Of the items that are asked about, in milliseconds since the epoch; null: of now. */
  readonly atMs: number | null;
}

const WANTED =
  'want {"series": "up{job=\\"node\\"}"} or {"labels": [["__name__", "up"], ...]}, with "tenant" and "at" where they are needed';

/** Answers what is wrong as text. @param body of a request */
export function readExplainRequest(body: string): ExplainRequest | string {
  const request = parsed(body);
  if (!isMap(request)) return WANTED;
  const { series, labels, tenant = null, at = null, ...others } = request;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) return `unknown key ${unknown}; ${WANTED}`;
  if ((series === undefined) === (labels === undefined)) return WANTED;
  if (tenant !== null && typeof tenant !== "string") return "want text as tenant";
  const atMs = typeof at === "string" ? parseMoment(at) : null;
  if (at !== null && atMs === null) return `want ${WANT_MOMENT} as at`;
  if (series === undefined) return isLabelSet(labels) ? { labels, tenant, atMs } : WANTED;
  if (typeof series !== "string") return WANTED;
  try {
    return { labels: parseSeriesText(series), tenant, atMs };
  } catch (error) {
    if (error instanceof SyntaxError) return `series: ${error.message}`;
    throw error;
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isLabelSet(value: unknown): value is readonly Label[] {
  return Array.isArray(value) && value.every(isLabel);
}

function isLabel(value: unknown): value is Label {
  return Array.isArray(value) && value.length === 2 && value.every((part) => typeof part === "string");
}
