/** Decides sampled series under one configuration, as the gateway would when it runs. */
import { Decider, type RouteDecision } from "../route/decide.ts";
import type { SampledSeries } from "../route/liveSample.ts";
import { Cursor } from "../wire/cursor.ts";
import { scanSeries, SeriesScan } from "../wire/scan.ts";
import type { PlanConfig } from "./planConfig.ts";

const NO_DECISIONS: readonly RouteDecision[] = [];

export class SeriesDecider {
  readonly #decider: Decider;
  readonly #maxLabels: number;
  readonly #headers: readonly string[];
  readonly #isDue: () => boolean;

  /** @param isDue whether it is time for a pause */
  constructor({ relabel, routes, limits }: PlanConfig, isDue: () => boolean) {
    const options = routes.map(({ route }) => route);
    this.#decider = new Decider(relabel, options, limits);
    this.#maxLabels = limits.maxLabels;
    this.#headers = options.map(({ tenant }) => tenant.header);
    this.#isDue = isDue;
  }

  /** By route; none for a series that no route is offered. A tenant in a header that nobody asked for before is unknown. */
  *decide({ labels, tenants }: SampledSeries): Generator<undefined, readonly RouteDecision[], undefined> {
    const byRoute = this.#headers.map((header) => tenants.get(header) ?? null);
    const decision = yield* this.#decider.decideInSteps(this.#scan(labels), byRoute, this.#isDue);
    return decision.kind === "offered" ? decision.routes : NO_DECISIONS;
  }

  #scan(labels: Uint8Array): SeriesScan {
    // A label takes two bytes or more.
    const scan = new SeriesScan(labels, Math.min(this.#maxLabels, labels.length >> 1));
    scanSeries(new Cursor(labels), labels.length, scan);
    return scan;
  }
}
