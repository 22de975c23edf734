/** Lists of upstreams for two routes of one gateway, as text of a configuration, and where each of them has a series. */
import { Explainer } from "../../src/explain/explainer.ts";
import { configOf } from "./gatewayRig.ts";
import type { Configured } from "./reloadedGateway.ts";
import { labelsOf } from "./timedItems.ts";

/** Routes by their names: how they place series. Each has the path of its name at every receiver. */
const ROUTES = {
  series: "placement: {key: series}",
  tasks: "tasks: {count: 128}\n    placement: {key: task}",
} as const;
export type LiveRoute = keyof typeof ROUTES;
export const LIVE_ROUTES = ["series", "tasks"] as const satisfies readonly LiveRoute[];

/** The upstreams of a period by their numbers, in the order of the list. */
export interface LiveList {
  readonly upstreams: readonly number[];
  /** Those that are tombstones. */
  readonly removed?: readonly number[];
}

export interface LiveLists {
  readonly first: LiveList;
  /** Of a period of its own. */
  readonly second?: LiveList & { readonly fromMs: number };
  /** The receiver of an upstream that is not at the receiver of its own number. */
  readonly readdressed?: ReadonlyMap<number, number>;
}

export class LiveSetup implements Configured {
  readonly text: string;
  readonly #lists: LiveLists;
  /** Upstreams by route, period and series. */
  readonly #places: Readonly<Record<LiveRoute, readonly Uint8Array[]>>;

  /** @param origins of the receivers */
  constructor(lists: LiveLists, origins: readonly string[], seriesCount: number) {
    this.#lists = lists;
    this.text = this.#write(origins);
    this.#places = explain(this.text, lists.second?.fromMs ?? 0, seriesCount);
  }

  /** The upstream that a series' item of a time belongs to, as the command explain says it. */
  upstreamOf(route: LiveRoute, number: number, timestampMs: number): number {
    const period = timestampMs < (this.#lists.second?.fromMs ?? Infinity) ? 0 : 1;
    return this.#places[route][period]?.[number] ?? NaN;
  }

  receiverOf(route: LiveRoute, number: number, timestampMs: number): number {
    const upstream = this.upstreamOf(route, number, timestampMs);
    return this.#lists.readdressed?.get(upstream) ?? upstream;
  }

  /** The upstream at a receiver. */
  upstreamAt(receiver: number): number {
    const found = [...(this.#lists.readdressed ?? [])].find(([, at]) => at === receiver);
    return found?.[0] ?? receiver;
  }

  #write(origins: readonly string[]): string {
    const { first, second, readdressed } = this.#lists;
    const routes = LIVE_ROUTES.map((route) => {
      const described = new Set<number>();
      const lines = ({ upstreams, removed = [] }: LiveList): string =>
        upstreams
          .map((upstream) => {
            const name = nameOf(route, upstream);
            if (removed.includes(upstream)) return `{name: ${name}, removed: true}`;
            if (described.has(upstream)) return `{name: ${name}}`;
            described.add(upstream);
            return `{name: ${name}, url: "${origins[readdressed?.get(upstream) ?? upstream] ?? ""}/${route}"}`;
          })
          .join(", ");
      const periods = [
        `{upstreams: [${lines(first)}]}`,
        ...(second === undefined
          ? []
          : [`{from: ${new Date(second.fromMs).toISOString()}, upstreams: [${lines(second)}]}`]),
      ];
      return `  - name: ${route}\n    ${ROUTES[route]}\n    topology: [${periods.join(", ")}]\n`;
    });
    // explain makes room for so many labels for each series anew.
    return `reload: {watch: false}\nshutdown: {drain_delay: 0s}\nlimits: {max_labels: 8}\nroutes:\n${routes.join("")}`;
  }
}

export function nameOf(route: LiveRoute, upstream: number): string {
  return `${route}-${upstream}`;
}

function explain(text: string, borderMs: number, seriesCount: number): Record<LiveRoute, Uint8Array[]> {
  const explainer = new Explainer(configOf(text));
  const places = {
    series: [new Uint8Array(seriesCount), new Uint8Array(seriesCount)],
    tasks: [new Uint8Array(seriesCount), new Uint8Array(seriesCount)],
  };
  for (const [period, atMs] of [borderMs - 1, borderMs].entries()) {
    for (let number = 0; number < seriesCount; number += 1) {
      const explanation = explainer.explain(labelsOf(number), null, atMs);
      if ("refused" in explanation) throw new Error(`series ${number} is refused: ${explanation.refused}`);
      for (const { route, upstreams = [] } of explanation.routes) {
        const row = places[route as LiveRoute][period];
        if (row !== undefined) row[number] = Number(upstreams.join().replace(`${route}-`, ""));
      }
    }
  }
  return places;
}
