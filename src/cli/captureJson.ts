/** Decoded requests as JSON: fields as their schemas name them, absent ones left out, labels as [name, value] pairs. */
import { compileKey } from "../hash/labelSetKey.ts";
import { labelSpans } from "../hash/labelOrder.ts";
import { bytesOf, doubleJson, integerJson, textOf, toSigned, toUnsigned } from "./exactValue.ts";
import type {
  Bits64,
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

type Json = Readonly<Record<string, unknown>>;

const flatKey = compileKey({ kind: "all" }, "flat", null);

/** A remote write 1.0 request. `key` of a series is its flat label-set key. */
export function writeRequestJson(request: RawWriteRequest): Json {
  return {
    timeseries: request.timeseries.map(seriesJson),
    metadata: request.metadata.map(metadataJson),
    ...unknownJson(request),
  };
}

/** A remote write 2.0 request, with references and with what they stand for; null stands for one out of range. */
export function request2Json(request: RawRequest2): Json {
  return {
    symbols: request.symbols.map(textOf),
    timeseries: request.timeseries.map((series) => series2Json(series, request.symbols)),
    ...unknownJson(request),
  };
}

function seriesJson(series: RawSeries): Json {
  return {
    labels: labelsJson(series.labels),
    ...itemsJson(series, ({ labels = [] }) => ({ labels: labelsJson(labels) })),
    key: keyOf(series.labels.flatMap(({ name, value }) => [name, value])),
    ...unknownJson(series),
  };
}

function series2Json(series: RawSeries2, symbols: readonly RawText[]): Json {
  const { metadata } = series;
  return {
    labels_refs: series.labels_refs,
    ...itemsJson(series, ({ labels_refs = [] }) => ({
      labels_refs,
      labels: resolvedLabels(labels_refs, symbols),
    })),
    ...(metadata && {
      metadata: {
        type: metadata.type,
        help_ref: metadata.help_ref,
        unit_ref: metadata.unit_ref,
        help: resolved(metadata.help_ref, symbols),
        unit: resolved(metadata.unit_ref, symbols),
        ...unknownJson(metadata),
      },
    }),
    ...integerField("created_timestamp", toSigned(series.created_timestamp)),
    labels: resolvedLabels(series.labels_refs, symbols),
    key: keyOf(series.labels_refs.map((reference) => symbols[reference] ?? [])),
    ...unknownJson(series),
  };
}

interface Items {
  readonly samples: readonly RawSample[];
  readonly exemplars: readonly RawExemplar[];
  readonly histograms: readonly RawHistogram[];
}

function itemsJson(
  { samples, exemplars, histograms }: Items,
  exemplarLabels: (item: RawExemplar) => Json,
): Json {
  return {
    ...(samples.length > 0 && { samples: samples.map(sampleJson) }),
    ...(exemplars.length > 0 && {
      exemplars: exemplars.map((exemplar) => ({
        ...exemplarLabels(exemplar),
        value: doubleJson(exemplar.value),
        timestamp: integerJson(toSigned(exemplar.timestamp)),
        ...unknownJson(exemplar),
      })),
    }),
    ...(histograms.length > 0 && { histograms: histograms.map(histogramJson) }),
  };
}

function sampleJson(sample: RawSample): Json {
  return {
    value: doubleJson(sample.value),
    timestamp: integerJson(toSigned(sample.timestamp)),
    ...startJson(sample),
    ...unknownJson(sample),
  };
}

function histogramJson(histogram: RawHistogram): Json {
  return {
    ...countJson(histogram.count, histogram),
    ...doubleField("sum", histogram.sum),
    ...integerField("schema", BigInt(histogram.schema)),
    ...doubleField("zero_threshold", histogram.zero_threshold),
    ...countJson(histogram.zero_count, histogram),
    ...listField("negative_spans", histogram.negative_spans, spanJson),
    ...listField("negative_deltas", histogram.negative_deltas, deltaJson),
    ...listField("negative_counts", histogram.negative_counts, doubleJson),
    ...listField("positive_spans", histogram.positive_spans, spanJson),
    ...listField("positive_deltas", histogram.positive_deltas, deltaJson),
    ...listField("positive_counts", histogram.positive_counts, doubleJson),
    ...integerField("reset_hint", BigInt(histogram.reset_hint)),
    timestamp: integerJson(toSigned(histogram.timestamp)),
    ...listField("custom_values", histogram.custom_values, doubleJson),
    ...startJson(histogram),
    ...unknownJson(histogram),
  };
}

type CountField = NonNullable<RawHistogram["count"] | RawHistogram["zero_count"]>;

/** A member of a oneof says something even when it is 0. */
function countJson(field: CountField | undefined, histogram: RawHistogram): Json {
  if (field === undefined) return {};
  const isInteger = field === "count_int" || field === "zero_count_int";
  return { [field]: isInteger ? integerJson(toUnsigned(histogram[field])) : doubleJson(histogram[field]) };
}

function spanJson(span: RawSpan): Json {
  return { offset: span.offset, length: span.length, ...unknownJson(span) };
}

function deltaJson(delta: Bits64): number | string {
  return integerJson(toSigned(delta));
}

function metadataJson(metadata: RawMetadata): Json {
  return {
    type: metadata.type,
    metric_family_name: textOf(metadata.metric_family_name),
    help: textOf(metadata.help),
    unit: textOf(metadata.unit),
    ...integerField("account_id", BigInt(metadata.account_id)),
    ...integerField("project_id", BigInt(metadata.project_id)),
    ...unknownJson(metadata),
  };
}

function labelsJson(labels: readonly RawLabel[]): [string, string][] {
  return labels.map(({ name, value }) => [textOf(name), textOf(value)]);
}

function resolvedLabels(references: readonly number[], symbols: readonly RawText[]): (string | null)[][] {
  const pairs: (string | null)[][] = [];
  for (let i = 0; i < references.length; i += 2) {
    pairs.push(references.slice(i, i + 2).map((reference) => resolved(reference, symbols)));
  }
  return pairs;
}

function resolved(reference: number, symbols: readonly RawText[]): string | null {
  const symbol = symbols[reference];
  return symbol === undefined ? null : textOf(symbol);
}

function keyOf(namesAndValues: readonly RawText[]): number {
  return flatKey(labelSpans(namesAndValues.map(bytesOf)), null);
}

function startJson({ start_timestamp }: RawSample | RawHistogram): Json {
  return start_timestamp === undefined ? {} : integerField("start_timestamp", toSigned(start_timestamp));
}

function integerField(name: string, value: bigint): Json {
  return value === 0n ? {} : { [name]: integerJson(value) };
}

function doubleField(name: string, bits: Bits64): Json {
  return bits.high === 0 && bits.low === 0 ? {} : { [name]: doubleJson(bits) };
}

function listField<Item>(name: string, items: readonly Item[], toJson: (item: Item) => unknown): Json {
  return items.length === 0 ? {} : { [name]: items.map((item) => toJson(item)) };
}

/** Fields that the schema does not have, as hex of tag and value. */
function unknownJson({ $unknowns = [] }: RawMessage): Json {
  if ($unknowns.length === 0) return {};
  return { unknown_fields: $unknowns.map((field) => Buffer.from(field).toString("hex")) };
}
