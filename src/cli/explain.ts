/** `explain`: what every route does with a series, by the code that routes real traffic. */
import type { Config } from "../config/config.ts";
import { compileRoute, type Route, type RouteDecision } from "../route/decide.ts";
import { checkAtDoor, type RefusalReason } from "../route/door.ts";
import { labelPairs, labelText } from "../route/labelText.ts";
import { TaskLabel } from "../route/taskLabel.ts";
import { encodeLabelSet, seriesRequest } from "../wire/labelField.ts";
import { scanRequest, type SeriesScan } from "../wire/scan.ts";
import { spliced } from "../wire/splice.ts";
import { type Labels, readSeriesLines } from "./seriesLines.ts";
import { parseSeriesText } from "./seriesText.ts";

/** What one route does with a series; the names are those of `--json`. */
interface RouteExplanation {
  readonly route: string;
  /** As they leave for the upstream, task label included. */
  readonly labels: Labels;
  /** Stage 1's key and task; absent in a route without tasks. */
  readonly key?: number;
  readonly task?: number;
  /** What stage 2 hashes. */
  readonly placement_key: number;
  readonly slots: readonly number[];
  readonly upstreams: readonly string[];
}

export type Explanation =
  { readonly refused: RefusalReason } | { readonly routes: readonly RouteExplanation[] };

const LONE_SURROGATE = /\p{Surrogate}/u;
const encoder = new TextEncoder();

/** Explains series under one configuration. */
export class Explainer {
  readonly #config: Config;
  readonly #routes: readonly Route[];

  constructor(config: Config) {
    this.#config = config;
    this.#routes = config.routes.map(({ route }) => compileRoute(route));
  }

  explain(labels: Labels): Explanation {
    // Text that is no Unicode cannot be sent as UTF-8.
    if (labels.flat().some((text) => LONE_SURROGATE.test(text))) return { refused: "invalid_utf8" };
    const request = encodeLabelSet(labels.flat().map((text) => encoder.encode(text)));
    return withSeries(request, this.#config.limits.maxLabels, (series) => {
      const refused = checkAtDoor(series, this.#config.limits);
      if (refused !== null) return { refused };
      return { routes: this.#routes.map((route) => this.#explainRoute(route, series)) };
    });
  }

  #explainRoute(route: Route, series: SeriesScan): RouteExplanation {
    const decision = route.decide(series);
    const stage1 =
      decision.key === null || decision.task === null ? {} : { key: decision.key, task: decision.task };
    return {
      route: route.options.name,
      labels: this.#forwardedLabels(route, series, decision),
      ...stage1,
      placement_key: decision.placementKey,
      slots: [decision.slot],
      upstreams: [route.options.upstreams[decision.slot] ?? ""],
    };
  }

  #forwardedLabels(route: Route, series: SeriesScan, { task }: RouteDecision): Labels {
    const { tasks } = route.options;
    if (tasks === null || task === null) return labelPairs(series);
    const message = series.bytes.subarray(series.start, series.end);
    const labelled = spliced(message, new TaskLabel(tasks.label).splice(series, task));
    return withSeries(seriesRequest(labelled), this.#config.limits.maxLabels + 1, labelPairs);
  }
}

/** Scans a request of one series and uses it while it is valid. */
function withSeries<Result>(
  request: Uint8Array,
  maxLabels: number,
  use: (series: SeriesScan) => Result,
): Result {
  let result: { readonly value: Result } | undefined;
  scanRequest(request, maxLabels, {
    series: (series) => {
      result = { value: use(series) };
    },
    metadata: () => undefined,
  });
  if (result === undefined) throw new Error("bug: a request of one series has none");
  return result.value;
}

/** Explains a series given as text, for a person. Answers the exit code. */
export function explainText(
  config: Config,
  text: string,
  json: boolean,
  print: (line: string) => void,
): number {
  const labels = parseSeriesText(text);
  const explanation = new Explainer(config).explain(labels);
  if (json) print(JSON.stringify(explanation));
  else describe(labels, explanation).forEach(print);
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
  print: (line: string) => void,
): Promise<number> {
  const explainer = new Explainer(config);
  for await (const labels of readSeriesLines(file)) print(JSON.stringify(explainer.explain(labels)));
  return 0;
}

function describe(labels: Labels, explanation: Explanation): string[] {
  const series = labelText(labels);
  if ("refused" in explanation) return [`${series} is refused as it comes in: ${explanation.refused}`];
  return [
    series,
    ...explanation.routes.flatMap((route) => [
      `  route ${route.route}`,
      ...(route.task === undefined
        ? []
        : [`    key            ${route.key ?? ""}`, `    task           ${route.task}`]),
      `    placement key  ${route.placement_key}`,
      `    slot           ${route.slots.join(", ")}`,
      `    upstream       ${route.upstreams.join(", ")}`,
      `    forwarded as   ${labelText(route.labels)}`,
    ]),
  ];
}
