/** Label sets as text for a person, in the notation of PromQL. */
import { extentOf, type LabelSpans, SPAN_STRIDE } from "../hash/labelOrder.ts";

const METRIC_NAME = "__name__";
/** UTF-8 takes no more than this for a character as JavaScript counts them. */
const MAX_BYTES_PER_CHARACTER = 3;
/** Between labels there may be much that is none. */
export const MAX_BYTES_AT_ONCE = 4096;
const PLAIN_NAME = /^[a-zA-Z_][a-zA-Z0-9_]*$/;
const PLAIN_METRIC = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;

/** Names and values of a label set as strings, in their order; invalid UTF-8 becomes U+FFFD. */
export function labelPairs(labels: LabelSpans): [string, string][] {
  const { bytes, spans, count } = labels;
  const { first, last } = extentOf(labels);
  const text = textsWithin(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), first, last);
  const pairs: [string, string][] = [];
  for (let at = 0; at < count * SPAN_STRIDE; at += SPAN_STRIDE) {
    pairs.push([text(spans[at], spans[at + 1]), text(spans[at + 2], spans[at + 3])]);
  }
  return pairs;
}

/** Answers the text of ranges that lie between `first` and `last`. */
export function textsWithin(
  buffer: Buffer,
  first: number,
  last: number,
): (start?: number, end?: number) => string {
  // One call for all labels costs a fraction of one for each. It says where each is when every character is one byte.
  const whole = last - first <= MAX_BYTES_AT_ONCE ? buffer.toString("utf8", first, last) : "";
  if (whole.length !== last - first) return (start = 0, end = 0) => buffer.toString("utf8", start, end);
  return (start = 0, end = 0) => whole.slice(start - first, end - first);
}

/** Writes a label set as `up{job="node"}`; names that need it are quoted, control characters escaped. */
export function labelText(pairs: readonly (readonly [string, string])[]): string {
  const metric = pairs.find(([name, value]) => name === METRIC_NAME && PLAIN_METRIC.test(value));
  const inside = pairs
    .filter((pair) => pair !== metric)
    .map(([name, value]) => `${PLAIN_NAME.test(name) ? name : quote(name)}=${quote(value)}`)
    .join(",");
  if (metric === undefined) return `{${inside}}`;
  return inside === "" ? metric[1] : `${metric[1]}{${inside}}`;
}

/** The label set of a scanned series, cut to a length that fits an error message. */
export function labelTextOf(labels: LabelSpans, maxCharacters: number): string {
  const { bytes, spans, count } = labels;
  // Values may be megabytes long: decode no more than can be shown, and enough that the cut below takes off what is torn.
  const maxBytes = maxCharacters * MAX_BYTES_PER_CHARACTER;
  const shown = Int32Array.from(spans.subarray(0, Math.min(count, maxCharacters) * SPAN_STRIDE));
  for (let i = 0; i < shown.length; i += 2) {
    shown[i + 1] = Math.min(shown[i + 1] ?? 0, (shown[i] ?? 0) + maxBytes);
  }
  const text = labelText(labelPairs({ bytes, spans: shown, count: shown.length / SPAN_STRIDE }));
  return text.length > maxCharacters ? `${text.slice(0, maxCharacters - 1)}…` : text;
}

/** A string in double quotes on one line: JSON's escapes, and the other control characters too. */
function quote(text: string): string {
  return JSON.stringify(text).replace(
    /[\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
