/**
 * Senders of numbered series before the built gateway, receivers behind it: what a test does to either, in the end every
 * sample that was acknowledged has to be where it belongs.
 */
import { setTimeout as pause } from "node:timers/promises";
import { Explainer } from "../../src/explain/explainer.ts";
import type { Rig } from "../peers/rig.ts";
import { until, untilSettled } from "../peers/until.ts";
import { NUMBER_LABEL } from "./arrivals.ts";
import { GatewayProcess } from "./gatewayProcess.ts";
import { configOf } from "./gatewayRig.ts";
import { ledgerGaps } from "./ledger.ts";
import { NumberedReceiver } from "./numberedReceiver.ts";
import { NumberedSender } from "./numberedSender.ts";
import { type NumberedSeries, numberedSeries } from "./numberedSeries.ts";

const TENANT_HEADER = "X-Scope-OrgID";
const SETTLED_WITHIN_MS = 60_000;

/** A route of the gateway. */
export interface LoadRoute {
  readonly name: string;
  /** Its upstreams: receivers by number, each of which belongs to this route alone. */
  readonly receivers: readonly number[];
  readonly replicas: number;
  /** The value of `delivery`. */
  readonly delivery: string;
  /** A regular expression of the numbers of the series that it takes; without it, all. */
  readonly takes?: string;
}

/** A route for all series, which has three receivers. @param delivery its value in the configuration */
export function onlyRoute(delivery: string): LoadRoute {
  return { name: "aggregation", receivers: [0, 1, 2], replicas: 1, delivery };
}

export interface LoadOptions {
  readonly routes: readonly LoadRoute[];
  /** How long a receiver takes to answer while it is slow. */
  readonly slowMs: number;
  /** The tenant of each sender; null for none. */
  readonly senders: readonly (string | null)[];
  readonly seriesPerSender: number;
  /** Between an answer and the next request of a sender. */
  readonly everyMs: number;
  /** Further options of the spool, each with a comma in front. */
  readonly spool?: string;
  /** Of a label that makes each series long, and is hard to compress. */
  readonly textBytes?: number;
}

/** What is to be seen when all is over; everything but the counts is empty when it is right. */
export interface LoadEnd {
  /** Series and samples that are missing, came too early, or to another upstream than explain names. */
  readonly wrong: readonly string[];
  /** Answers after which a sender gives up. */
  readonly refused: readonly string[];
  readonly ledgerGaps: readonly string[];
  /** Samples that the ledger of the last process has in memory or in the spool. */
  readonly held: number;
  /** Segments and files kept aside that are left in the spool. */
  readonly segments: readonly string[];
  readonly acknowledged: number;
  readonly repeated: number;
}

export const NOTHING_WRONG = {
  wrong: [],
  refused: [],
  ledgerGaps: [],
  held: 0,
  segments: [],
} satisfies Partial<LoadEnd>;

export class NumberedLoad {
  readonly gateway: GatewayProcess;
  readonly receivers: readonly NumberedReceiver[];
  readonly senders: readonly NumberedSender[];
  readonly #routes: readonly LoadRoute[];
  /** Where a series belongs, by its number, as explain has it: numbers of receivers. */
  readonly #places: ReadonlyMap<number, readonly number[]>;

  private constructor(
    gateway: GatewayProcess,
    receivers: readonly NumberedReceiver[],
    senders: readonly NumberedSender[],
    routes: readonly LoadRoute[],
    places: ReadonlyMap<number, readonly number[]>,
  ) {
    this.gateway = gateway;
    this.receivers = receivers;
    this.senders = senders;
    this.#routes = routes;
    this.#places = places;
  }

  /** Starts receivers, gateway and senders. */
  static async start(rig: Rig, options: LoadOptions): Promise<NumberedLoad> {
    const receivers = options.routes.flatMap((route) =>
      route.receivers.map(() => new NumberedReceiver(options.slowMs)),
    );
    for (const receiver of receivers) rig.closeAtEnd(receiver);
    const urls = await Promise.all(receivers.map((receiver) => receiver.start()));
    const text = configText(urls, options.routes);
    const gateway = await GatewayProcess.create(rig, text, options.spool);
    const all = options.senders.map((tenant, sender) => ({
      tenant,
      series: numberedSeries(sender * options.seriesPerSender, options.seriesPerSender, options.textBytes),
    }));
    const explainer = new Explainer(configOf(text));
    const places = new Map(
      all.flatMap(({ tenant, series }) =>
        series.map((each) => [each.number, placesOf(each, tenant, explainer)] as const),
      ),
    );
    for (const [place, receiver] of receivers.entries())
      receiver.expect((number) => places.get(number)?.includes(place) === true);
    await gateway.start();
    const senders = all.map(({ tenant, series }) => {
      const headers: Record<string, string> = tenant === null ? {} : { [TENANT_HEADER]: tenant };
      const sender = new NumberedSender(gateway.origin, series, options.everyMs, headers);
      rig.closeAtEnd(sender);
      return sender;
    });
    return new NumberedLoad(gateway, receivers, senders, options.routes, places);
  }

  /** Samples that are acknowledged, of all series. */
  get acknowledged(): number {
    return this.senders.reduce((sum, { acknowledged, series }) => sum + acknowledged * series.length, 0);
  }

  /** Waits until every sender has had so many further requests acknowledged. */
  async acknowledgedAgain(requests: number, withinMs: number): Promise<void> {
    const wanted = this.senders.map(({ acknowledged }) => acknowledged + requests);
    await until(`${requests} more requests of each sender to be acknowledged`, withinMs, () =>
      this.senders.every(({ acknowledged }, index) => acknowledged >= (wanted[index] ?? 0)),
    );
  }

  /** Waits until so many further requests of all senders are acknowledged, or for some time. */
  async acknowledgedWithin(requests: number, ms: number): Promise<void> {
    const count = (): number => this.senders.reduce((sum, { acknowledged }) => sum + acknowledged, 0);
    const wanted = count() + requests;
    const deadline = performance.now() + ms;
    while (count() < wanted && performance.now() < deadline) await pause(1);
  }

  /** Waits until receivers have all that is acknowledged at this moment. */
  async reached(places: readonly number[], withinMs: number): Promise<void> {
    const wanted = this.senders.map(({ acknowledged }) => acknowledged);
    await until(`what is acknowledged to reach upstreams ${places.join()}`, withinMs, () =>
      this.senders.every(({ series }, sender) =>
        series.every(({ number }) =>
          this.#arrivals(number).every(
            ({ place, arrived }) => !places.includes(place) || arrived >= (wanted[sender] ?? 0),
          ),
        ),
      ),
    );
  }

  /** With all receivers well and the gateway running: ends the senders, and waits until nothing is under way. */
  async end(): Promise<LoadEnd> {
    await Promise.all(this.receivers.map((receiver) => receiver.become("well")));
    await Promise.all(this.senders.map((sender) => sender.finish()));
    let held = NaN;
    let gaps: string[] = [];
    const settled = untilSettled("the gateway to hold nothing", SETTLED_WITHIN_MS, async () => {
      const metrics = await this.gateway.metrics();
      const count = (name: string): number => metrics.sum(`stream_metrics_route_samples_${name}`);
      held = count("spooled") + count("in_flight");
      gaps = this.#routes.flatMap(({ name, replicas }) => ledgerGaps(metrics, [name], replicas));
      const isEmpty = held === 0 && (await this.gateway.segments()).length === 0;
      return isEmpty ? count("delivered_total") : undefined;
    });
    // What is held for ever is told with all the rest.
    await settled.catch(() => undefined);
    const missing = this.senders.flatMap(({ series, acknowledged }) =>
      series.flatMap(({ number }) =>
        this.#arrivals(number)
          .filter(({ arrived }) => arrived < acknowledged)
          .map(
            ({ place, arrived }) =>
              `series ${number} ends with sample ${arrived} of ${acknowledged} that are acknowledged at vmagent-${place}`,
          ),
      ),
    );
    return {
      wrong: [...this.receivers.flatMap(({ problems }) => problems), ...missing],
      refused: this.senders.flatMap(({ refused }) => refused),
      ledgerGaps: gaps,
      held,
      segments: await this.gateway.segments(),
      acknowledged: this.acknowledged,
      repeated: this.receivers.reduce((sum, { repeated }) => sum + repeated, 0),
    };
  }

  /** How much of a series has arrived, at each of the receivers where it belongs. */
  #arrivals(number: number): { readonly place: number; readonly arrived: number }[] {
    const places = this.#places.get(number) ?? [];
    return places.map((place) => ({ place, arrived: this.receivers[place]?.arrived(number) ?? 0 }));
  }
}

function placesOf({ number, labels }: NumberedSeries, tenant: string | null, explainer: Explainer): number[] {
  const explanation = explainer.explain(
    labels.map(([name, value]) => [name, value]),
    tenant,
  );
  const upstreams =
    "routes" in explanation ? explanation.routes.flatMap((route) => route.upstreams ?? []) : [];
  if (upstreams.length === 0) throw new Error(`series ${number} belongs nowhere`);
  return upstreams.map((upstream) => Number(upstream.replace("vmagent-", "")));
}

function configText(urls: readonly string[], routes: readonly LoadRoute[]): string {
  return `shutdown: {drain_delay: 0s, grace: 3s}
routes:
${routes.map((route) => routeText(urls, route)).join("")}`;
}

function routeText(
  urls: readonly string[],
  { name, receivers, replicas, delivery, takes }: LoadRoute,
): string {
  const upstreams = receivers.map(
    (place) => `      - {name: vmagent-${place}, url: "${urls[place] ?? ""}"}\n`,
  );
  return `  - name: ${name}
    relabel_configs: [${takes === undefined ? "" : `{source_labels: [${NUMBER_LABEL}], regex: '${takes}', action: keep}`}]
    tenant: {header: ${TENANT_HEADER}, pass: true}
    tasks: {count: 128}
    placement: {key: task, replicas: ${replicas}}
    delivery: ${delivery}
    upstreams:
${upstreams.join("")}`;
}
