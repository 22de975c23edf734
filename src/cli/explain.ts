/** `explain`: prints what every route does with a series. */
import type { Config } from "../config/config.ts";
import { Explainer } from "../explain/explainer.ts";
import { parseSeriesText } from "../explain/seriesText.ts";
import { describeExplanation } from "./explainText.ts";
import { readSeriesLines } from "./seriesLines.ts";

export interface ExplainOptions {
  /** What the request's header says, to the routes that look at it. */
  readonly tenant: string | null;
  /** Timestamp of the items that are asked about, in milliseconds since the epoch; absent: in the newest period. */
  readonly atMs?: number;
}

/** Explains a series given as text, for a person. Answers the exit code. */
export function explainText(
  config: Config,
  text: string,
  { tenant, atMs, json }: ExplainOptions & { readonly json: boolean },
  print: (line: string) => void,
): number {
  const labels = parseSeriesText(text);
  const explanation = new Explainer(config, Date.now()).explain(labels, tenant, atMs);
  if (json) print(JSON.stringify(explanation));
  else describeExplanation(labels, explanation).forEach(print);
  return 0;
}

/**
 * Explains series from a file, one `{"labels":[["__name__","up"],...]}` a line, printing one JSON line for each.
 *
 * @throws {SyntaxError} naming the line that cannot be read; the lines before it are printed
 */
export async function explainFile(
  config: Config,
  file: string,
  { tenant, atMs }: ExplainOptions,
  print: (line: string) => void,
): Promise<number> {
  const explainer = new Explainer(config, Date.now());
  for await (const { labels } of readSeriesLines(file)) {
    print(JSON.stringify(explainer.explain(labels, tenant, atMs)));
  }
  return 0;
}
