/** The page of a receiver: what has come to it, as plain text. */
import { grouped, printable } from "./printable.ts";
import type { SinkStats } from "./sinkCounts.ts";

const SHOWN_TASKS = 200;

export function sinkPage(stats: SinkStats): string {
  const distinct = `${stats.series_exact ? "" : "at least "}${grouped(stats.series)} different`;
  const last = stats.last_request === null ? "" : `; the last at ${stats.last_request}${senderText(stats)}`;
  const rows: [string, string][] = [
    ["requests", `${grouped(stats.requests)} accepted, ${grouped(stats.refused)} refused${last}`],
    ...(stats.last_refusal === null
      ? []
      : [["last refusal", printable(stats.last_refusal)] satisfies [string, string]]),
    ["bytes", `${grouped(stats.body_bytes)} compressed, ${grouped(stats.plain_bytes)} plain`],
    ["series", distinct],
    ["samples", grouped(stats.samples)],
    ["histograms", grouped(stats.histograms)],
    ["exemplars", grouped(stats.exemplars)],
    ["metadata", grouped(stats.metadata)],
    ["tasks", tasksText(stats.tasks)],
  ];
  return [
    `stream-metrics-route sink on ${stats.listen}`,
    "Remote write 1.0 to any path here is decoded, counted and thrown away. The same as JSON: /stats",
    "",
    ...rows.map(([name, text]) => `${name.padEnd(14)}${text}`),
    "",
    "busiest metrics, by samples, histograms and exemplars",
    ...stats.busiest.map(({ name, items }) => `${grouped(items).padStart(12)}  ${printable(name)}`),
    "",
    "last series",
    ...stats.recent.flat(),
    "",
  ].join("\n");
}

/** User-Agent of the last request, where it had one. */
export function senderText({ last_sender }: SinkStats): string {
  return last_sender === null ? "" : ` from ${printable(last_sender.slice(0, 100))}`;
}

function tasksText(tasks: readonly string[]): string {
  if (tasks.length === 0) return "none seen (no label stream_task_id)";
  const shown = tasks.slice(0, SHOWN_TASKS).map((task) => printable(task.slice(0, 20)));
  const more = tasks.length > shown.length ? " …" : "";
  return `${grouped(tasks.length)} seen: ${shown.join(" ")}${more}`;
}
