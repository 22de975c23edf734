/** What a scan tells of a request, kept in plain objects that can be compared with the reference decoder's. */
import { scanRequest, type SeriesScan } from "../../src/wire/scan.ts";

export interface ScannedSeries {
  /** Names and values, one character a byte. */
  readonly labels: readonly (readonly [string, string])[];
  /** The fields of the labels, tags included, as hex. */
  readonly labelFields: readonly string[];
  readonly labelsFound: number;
  readonly samples: number;
  readonly histograms: number;
  readonly exemplars: number;
  readonly restIsText: boolean;
  /** The message, as hex. */
  readonly message: string;
}

export interface ScannedRequest {
  readonly series: readonly ScannedSeries[];
  /** The fields, tags included, as hex. */
  readonly metadata: readonly { readonly field: string; readonly isText: boolean }[];
  readonly unknown: number;
}

export function scanned(plain: Uint8Array, maxLabels = 256): ScannedRequest {
  const series: ScannedSeries[] = [];
  const metadata: { field: string; isText: boolean }[] = [];
  const hex = (start: number, end: number): string => Buffer.from(plain.subarray(start, end)).toString("hex");
  const unknown = scanRequest(plain, maxLabels, {
    series: (scan) => series.push(copyOf(scan, hex)),
    metadata: (start, end, isText) => metadata.push({ field: hex(start, end), isText }),
  });
  return { series, metadata, unknown };
}

function copyOf(scan: SeriesScan, hex: (start: number, end: number) => string): ScannedSeries {
  const latin1 = (start: number, end: number): string =>
    Buffer.from(hex(start, end), "hex").toString("latin1");
  const labels: [string, string][] = [];
  const labelFields: string[] = [];
  for (let i = 0; i < scan.count; i++) {
    const [nameStart = 0, nameEnd = 0, valueStart = 0, valueEnd = 0] = scan.spans.subarray(i * 4, i * 4 + 4);
    labels.push([latin1(nameStart, nameEnd), latin1(valueStart, valueEnd)]);
    const [start = 0, end = 0] = scan.fields.subarray(i * 2, i * 2 + 2);
    labelFields.push(hex(start, end));
  }
  const { labelsFound, samples, histograms, exemplars, restIsText } = scan;
  const message = hex(scan.start, scan.end);
  return { labels, labelFields, labelsFound, samples, histograms, exemplars, restIsText, message };
}

/** The scan of the only series of a request. */
export function scanOfOne(plain: Uint8Array, maxLabels = 256): SeriesScan {
  const scans: SeriesScan[] = [];
  scanRequest(plain, maxLabels, { series: (scan) => scans.push(scan), metadata: () => undefined });
  const [scan] = scans;
  if (scan === undefined || scans.length > 1) throw new Error(`want one series, got ${scans.length}`);
  return scan;
}
