/**
 * The gateway of a configuration as lint asks for it, built once for all rules that are judged: where it sends series, by the code
 * that routes real traffic, and what is certain of a route whatever the rule.
 */
import type { Config, RouteConfig } from "../config/config.ts";
import { buildPlacement } from "../hash/placement.ts";
import type { Label } from "../relabel/rules.ts";
import { copyFor, Decider, type RouteDecision } from "../route/decide.ts";
import { labelPairs } from "../route/labelText.ts";
import { labelFieldBytes, seriesRequest, writeLabelField } from "../wire/labelField.ts";
import { type SeriesScan, withSeries } from "../wire/scan.ts";
import { spliced } from "../wire/splice.ts";
import { labelsFiltered } from "./exclusive.ts";
import { type LabelValues, valuesAfterRules } from "./labelValues.ts";
import { areOne, type Vmagent, vmagentAt } from "./vmagents.ts";

/** A copy of a series as it leaves the gateway. */
export interface SentCopy {
  /** By number, from 0. */
  readonly route: number;
  readonly upstream: string;
  readonly vmagent: Vmagent;
  /** null in a route without tasks. */
  readonly task: number | null;
  readonly labels: readonly Label[];
}

/** Rules can make as many labels as senders, and two are the gateway's own. */
const OWN_LABELS = 2;
/** Tags and lengths of its field, name and value, and a name. */
const LEAST_LABEL_BYTES = 7;
/** More tasks do not meet on one upstream of several. */
const MOST_TASKS_PLACED = 1000;

export class Routing {
  readonly config: Config;
  readonly routes: readonly RoutingRoute[];
  /** Labels that routes select by. */
  readonly selectedBy: readonly string[];
  readonly #decider: Decider;

  constructor(config: Config) {
    this.config = config;
    this.routes = config.routes.map((route) => new RoutingRoute(config, route));
    this.selectedBy = config.routes.flatMap(({ route }) => labelsFiltered(route.relabel.rules));
    const routes = config.routes.map(({ route }) => route);
    this.#decider = new Decider(config.relabel, routes, config.limits);
  }

  /** @throws {RangeError} when there is no such route */
  route(index: number): RoutingRoute {
    const route = this.routes[index];
    if (route === undefined) throw new RangeError(`no route ${index}`);
    return route;
  }

  /** The copies of a series. @param labels unique names; the tenant of a request is in its route's label */
  sent(labels: readonly Label[]): SentCopy[] {
    const maxLabels = Math.min(this.config.limits.maxLabels, labels.length);
    return withSeries(seriesRequest(messageOf(labels)), maxLabels, (series) => {
      const tenants = this.config.routes.map(({ route }) => {
        const text = labels.find(([name]) => name === route.tenant.label)?.[1] ?? "";
        return text === "" ? null : { text, header: text };
      });
      const decision = this.#decider.decide(series, tenants);
      if (decision.kind !== "offered") return [];
      return decision.routes.flatMap((each, route) => this.#ofRoute(each, route, series));
    });
  }

  #ofRoute(decision: RouteDecision, index: number, series: SeriesScan): SentCopy[] {
    if (decision.kind !== "placed") return [];
    const { task, places } = decision.placed;
    // Groups are of one period: at a border they begin anew.
    const { upstreams = [] } = places.at(-1) ?? {};
    return upstreams.flatMap((number) => {
      const copy = copyFor(decision.copies, number);
      const to = this.route(index).upstreams[number];
      if (copy.kind === "dropped" || to === undefined) return [];
      const message = spliced(series.bytes.subarray(series.start, series.end), ...copy.splices);
      const maxLabels = Math.min(
        this.config.limits.maxLabels + OWN_LABELS,
        Math.ceil(message.length / LEAST_LABEL_BYTES),
      );
      const labels = withSeries(seriesRequest(message), maxLabels, labelPairs);
      return [{ route: index, upstream: to.name, vmagent: to.vmagent, task, labels }];
    });
  }
}

/** A series that has labels and nothing else. */
function messageOf(labels: readonly Label[]): Uint8Array {
  const bytes = labels.reduce((sum, [name, value]) => sum + labelFieldBytes(name, value), 0);
  const message = new Uint8Array(bytes);
  let at = 0;
  for (const [name, value] of labels) at = writeLabelField(message, at, name, value).end;
  return message;
}

export interface RoutingUpstream {
  readonly name: string;
  readonly vmagent: Vmagent;
}

export class RoutingRoute {
  readonly judged: RouteConfig;
  /** In the order of the route's. */
  readonly upstreams: readonly RoutingUpstream[];
  readonly #config: Config;
  #values: LabelValues | null = null;
  #why: string | null | undefined;

  constructor(config: Config, route: RouteConfig) {
    this.#config = config;
    this.judged = route;
    this.upstreams = route.upstreams.map((to) => ({ name: to.name, vmagent: vmagentAt(to) }));
  }

  /** Of the vmagents of its upstreams. */
  get ids(): readonly string[] {
    return this.upstreams.map(({ vmagent }) => vmagent.id);
  }

  /** Names of the upstreams that may be one vmagent with another, and are not for certain. */
  get doubtful(): readonly string[] {
    const isDoubtful = ({ vmagent: { address, id } }: RoutingUpstream): boolean =>
      this.upstreams.some(({ vmagent }) => vmagent.address === address && vmagent.id !== id);
    return this.upstreams.filter(isDoubtful).map(({ name }) => name);
  }

  /** Which values labels may have in its series, after its rules. */
  get values(): LabelValues {
    this.#values ??= valuesAfterRules(this.#config, this.judged.route);
    return this.#values;
  }

  /** Why one vmagent gets all its series; null when that is not certain. */
  get oneVmagent(): string | null {
    if (this.#why === undefined) this.#why = this.#oneVmagent();
    return this.#why;
  }

  #oneVmagent(): string | null {
    if (this.upstreams.length === 1) return "the route has one upstream, which gets all series";
    if (areOne(this.upstreams.map(({ vmagent }) => vmagent))) {
      return "all upstreams of the route are one vmagent, which gets all series";
    }
    return this.#haveTasksOne() ? "all tasks live on one upstream, which gets all series" : null;
  }

  /** Whether the tasks of a route that places them are so few that they meet on one upstream, in all periods. */
  #haveTasksOne(): boolean {
    const { route } = this.judged;
    const tasks = route.tasks?.count ?? 0;
    if (route.placement.key.kind !== "task" || tasks > MOST_TASKS_PLACED) return false;
    const vmagentOf = new Map(this.upstreams.map(({ name, vmagent }) => [name, vmagent]));
    const reached = new Set<string>();
    for (const { slots } of route.topology) {
      const { place } = buildPlacement(route.placement, slots);
      for (let task = 0; task < tasks && reached.size < 2; task++) {
        reached.add(vmagentOf.get(slots[place(task)]?.name ?? "")?.id ?? "");
      }
    }
    return reached.size === 1;
  }
}
