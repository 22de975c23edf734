/** Decoded requests as text for a person: series in the notation of PromQL, their items below them. */
import { isUtf8 } from "node:buffer";
import { labelText } from "../route/labelText.ts";
import { bytesOf, doubleText, textOf, timestampText, toSigned, toUnsigned } from "./exactValue.ts";
import { grouped, printable, quoted } from "./printable.ts";
import type {
  RawExemplar,
  RawHistogram,
  RawLabel,
  RawMessage,
  RawMetadata,
  RawRequest2,
  RawSample,
  RawSeries,
  RawSeries2,
  RawSpan,
  RawText,
  RawWriteRequest,
} from "./referenceDecoder.ts";

type Labels = readonly (readonly [RawText, RawText])[];

/** A series of either version, with its labels at hand. */
export interface SeriesView extends RawMessage {
  readonly labels: Labels;
  readonly samples: readonly RawSample[];
  readonly exemplars: readonly { readonly exemplar: RawExemplar; readonly labels: Labels }[];
  readonly histograms: readonly RawHistogram[];
  /** What is told of the series besides its items. */
  readonly notes: readonly string[];
}

/** A request of either version. */
export interface RequestView extends RawMessage {
  readonly series: readonly SeriesView[];
  readonly metadata: readonly RawMetadata[];
}

const METRIC_TYPES = [
  "unknown",
  "counter",
  "gauge",
  "histogram",
  "gaugehistogram",
  "summary",
  "info",
  "stateset",
];
const RESET_HINTS = ["unknown", "yes", "no", "gauge"];
const SYMBOL_MISSING = new TextEncoder().encode("?");

/** The view of a remote write 1.0 request. */
export function viewWriteRequest(request: RawWriteRequest): RequestView {
  return { ...unknownOf(request), metadata: request.metadata, series: request.timeseries.map(viewSeries) };
}

/** The view of a remote write 1.0 series. */
export function viewSeries(series: RawSeries): SeriesView {
  return {
    ...unknownOf(series),
    labels: labelPairs(series.labels),
    samples: series.samples,
    histograms: series.histograms,
    exemplars: series.exemplars.map((exemplar) => ({ exemplar, labels: labelPairs(exemplar.labels ?? []) })),
    notes: series.labels.flatMap((label) => unknownLines(label, "in a label: ")),
  };
}

/** The view of a remote write 2.0 request; a reference out of range is shown as `?` and noted. */
export function viewRequest2(request: RawRequest2): RequestView {
  const resolve = (references: readonly number[]): Labels => {
    const pairs: [RawText, RawText][] = [];
    for (let i = 0; i < references.length; i += 2) {
      const [name, value] = [references[i], references[i + 1]];
      pairs.push([symbolOf(request, name), symbolOf(request, value)]);
    }
    return pairs;
  };
  return {
    ...unknownOf(request),
    metadata: [],
    series: request.timeseries.map((series) => ({
      ...unknownOf(series),
      labels: resolve(series.labels_refs),
      samples: series.samples,
      histograms: series.histograms,
      exemplars: series.exemplars.map((exemplar) => ({
        exemplar,
        labels: resolve(exemplar.labels_refs ?? []),
      })),
      notes: series2Notes(series, request),
    })),
  };
}

/** The lines of one series. */
export function seriesLines(series: SeriesView): string[] {
  return [
    seriesName(series.labels),
    ...series.notes.map((note) => `  ${note}`),
    ...invalidTextLines(series.labels),
    ...series.samples.flatMap(sampleLines),
    ...series.histograms.flatMap(histogramLines),
    ...series.exemplars.flatMap(({ exemplar, labels }) => [
      `  exemplar ${seriesName(labels)} ${doubleText(exemplar.value)} @ ${timestampText(exemplar.timestamp)}`,
      ...unknownLines(exemplar, "    "),
    ]),
    ...unknownLines(series, "  "),
  ];
}

/** The lines of one metadata entry. */
export function metadataLines(metadata: RawMetadata): string[] {
  const tenant =
    metadata.account_id === 0 && metadata.project_id === 0
      ? ""
      : ` tenant=${metadata.account_id}:${metadata.project_id}`;
  const family = printable(textOf(metadata.metric_family_name));
  return [
    `${family} ${describeMetadata(metadata.type, metadata.unit, metadata.help)}${tenant}`,
    ...unknownLines(metadata, "  "),
  ];
}

/** A label set in the notation of PromQL, safe to print. */
function seriesName(labels: Labels): string {
  return labelText(labels.map(([name, value]) => [textOf(name), textOf(value)]));
}

function labelPairs(labels: readonly RawLabel[]): Labels {
  return labels.map(({ name, value }) => [name, value]);
}

/** Fields that the schema does not have, a line each. */
export function unknownLines({ $unknowns = [] }: RawMessage, indent: string): string[] {
  return $unknowns.map((field) => {
    const hex = Buffer.from(field.subarray(0, 32)).toString("hex");
    const more = field.length > 32 ? "…" : "";
    return `${indent}field unknown to the schema, ${grouped(field.length)} bytes: ${hex}${more}`;
  });
}

function sampleLines(sample: RawSample): string[] {
  return [
    `  ${doubleText(sample.value)} @ ${timestampText(sample.timestamp)}${startText(sample)}`,
    ...unknownLines(sample, "    "),
  ];
}

function histogramLines(histogram: RawHistogram): string[] {
  const hint = RESET_HINTS[histogram.reset_hint] ?? String(histogram.reset_hint);
  const summary = [
    `count=${countText(histogram.count, histogram)}`,
    `sum=${doubleText(histogram.sum)}`,
    `schema=${histogram.schema}`,
    `zero_count=${countText(histogram.zero_count, histogram)}`,
    `zero_threshold=${doubleText(histogram.zero_threshold)}`,
    `reset_hint=${hint}`,
  ].join(" ");
  const { negative_spans, negative_deltas, negative_counts } = histogram;
  const { positive_spans, positive_deltas, positive_counts, custom_values } = histogram;
  return [
    `  histogram ${summary} @ ${timestampText(histogram.timestamp)}${startText(histogram)}`,
    ...listLine("negative spans", negative_spans, spanText),
    ...listLine("negative deltas", negative_deltas, (delta) => String(toSigned(delta))),
    ...listLine("negative counts", negative_counts, doubleText),
    ...listLine("positive spans", positive_spans, spanText),
    ...listLine("positive deltas", positive_deltas, (delta) => String(toSigned(delta))),
    ...listLine("positive counts", positive_counts, doubleText),
    ...listLine("custom bounds", custom_values, doubleText),
    ...[...negative_spans, ...positive_spans].flatMap((span) => unknownLines(span, "    ")),
    ...unknownLines(histogram, "    "),
  ];
}

function listLine<Item>(name: string, items: readonly Item[], text: (item: Item) => string): string[] {
  return items.length === 0 ? [] : [`    ${name}: ${items.map((item) => text(item)).join(" ")}`];
}

/** Where the span's buckets begin, from the end of the span before, and how many they are. */
function spanText({ offset, length }: RawSpan): string {
  return `${offset < 0 ? "" : "+"}${offset}×${length}`;
}

function countText(
  field: RawHistogram["count"] | RawHistogram["zero_count"],
  histogram: RawHistogram,
): string {
  if (field === undefined) return "none";
  const isInteger = field === "count_int" || field === "zero_count_int";
  return isInteger ? String(toUnsigned(histogram[field])) : `${doubleText(histogram[field])} (float)`;
}

function startText({ start_timestamp }: RawSample | RawHistogram): string {
  if (start_timestamp === undefined || toSigned(start_timestamp) === 0n) return "";
  return `, started ${timestampText(start_timestamp)}`;
}

/** Labels that a text cannot show as they are: their bytes. */
function invalidTextLines(labels: Labels): string[] {
  return labels
    .filter((label) => label.some((text) => !isUtf8(bytesOf(text))))
    .map((label) => {
      const [name = "", value = ""] = label.map((text) => Buffer.from(bytesOf(text)).toString("hex"));
      return `  not UTF-8: name ${name}, value ${value}`;
    });
}

function series2Notes(series: RawSeries2, request: RawRequest2): string[] {
  const references = [
    ...series.labels_refs,
    ...series.exemplars.flatMap(({ labels_refs = [] }) => labels_refs),
  ];
  const bad = references.filter((reference) => reference >= request.symbols.length);
  const created = toSigned(series.created_timestamp);
  const notes: string[] = [];
  if (bad.length > 0) {
    notes.push(`references out of range: ${bad.join(", ")}; there are ${request.symbols.length} symbols`);
  }
  if (series.labels_refs.length % 2 !== 0) notes.push("an odd number of label references");
  if (
    series.metadata !== null &&
    series.metadata.type + series.metadata.help_ref + series.metadata.unit_ref > 0
  ) {
    const { type, unit_ref, help_ref } = series.metadata;
    notes.push(
      `metadata ${describeMetadata(type, symbolOf(request, unit_ref), symbolOf(request, help_ref))}`,
    );
  }
  if (created !== 0n) notes.push(`created ${timestampText(series.created_timestamp)}`);
  return notes;
}

function describeMetadata(type: number, unit: RawText, help: RawText): string {
  const parts = [METRIC_TYPES[type] ?? `type ${type}`];
  if (unit.length > 0) parts.push(`unit=${quoted(textOf(unit))}`);
  if (help.length > 0) parts.push(quoted(textOf(help)));
  return parts.join(" ");
}

function symbolOf({ symbols }: RawRequest2, reference: number | undefined): RawText {
  return (reference === undefined ? undefined : symbols[reference]) ?? SYMBOL_MISSING;
}

function unknownOf({ $unknowns }: RawMessage): RawMessage {
  return $unknowns === undefined ? {} : { $unknowns };
}
