/** What one configuration makes of requests: built from it once, and put in the place of another whole. */
import { randomBytes } from "node:crypto";
import { now } from "./clock.ts";
import type { Config } from "./config/config.ts";
import { fingerprint } from "./config/fingerprint.ts";
import { MAX_BATCH_PLAIN_BYTES } from "./deliver/batch.ts";
import { Resends } from "./deliver/resends.ts";
import type { DecisionTableLimits } from "./route/options.ts";
import { Router, ROUTER_KEY_BYTES } from "./route/router.ts";
import { Tenants } from "./route/tenants.ts";
import type { Destination } from "./upstreams.ts";

const MAX_METADATA_PER_SEND = 5_000;

export interface Setup {
  readonly config: Config;
  readonly tenants: Tenants;
  readonly router: Router;
  /** What requests have got rid of that were answered 503. It speaks of this router's parcels. */
  readonly resends: Resends;
  /** By route and upstream, as parcels are addressed. */
  readonly destinations: readonly (readonly Destination[])[];
}

/**
 * Builds what a configuration makes of requests. Where it routes as the one before, that one's router goes on, with all
 * that it has decided.
 *
 * @param destinations called last, when nothing can fail any more
 * @param isDue        see RouterTools
 * @param before       of which no request is being routed; null at the start
 */
export function buildSetup(
  config: Config,
  destinations: () => Setup["destinations"],
  isDue: () => boolean,
  before: Setup | null,
): Setup {
  if (before !== null && routesAlike(before.config, config)) {
    return { ...before, config, destinations: destinations() };
  }
  return {
    config,
    tenants: new Tenants(
      config.routes.map(({ route }) => route.tenant),
      config.limits.maxLabelValueBytes,
    ),
    router: buildRouter(
      config,
      config.limits.maxDecodedBytes,
      config.memory.decisionTable,
      isDue,
      before?.router ?? null,
    ),
    resends: new Resends(now),
    destinations: destinations(),
  };
}

/** Whether one router serves for both: all that it, and tenants, are made of is the same. */
export function routesAlike(one: Config, other: Config): boolean {
  return routing(one) === routing(other);
}

function routing({ limits, memory, relabel, routes }: Config): string {
  const routed = routes.map(({ route, delivery: { maxSamplesPerSend, lanes } }) => {
    return { route, maxSamplesPerSend, lanes };
  });
  return fingerprint([limits, memory.decisionTable, relabel, routed]);
}

export function buildRouter(
  config: Config,
  maxPlainBytes: number,
  table: DecisionTableLimits,
  isDue: () => boolean,
  before: Router | null,
): Router {
  return new Router(
    config.relabel,
    config.routes.map(({ route, delivery }) => ({
      route,
      limits: { maxItems: delivery.maxSamplesPerSend, maxPlainBytes: MAX_BATCH_PLAIN_BYTES },
      lanes: delivery.lanes,
    })),
    {
      labels: config.limits,
      maxPlainBytes,
      metadata: { maxItems: MAX_METADATA_PER_SEND, maxPlainBytes: MAX_BATCH_PLAIN_BYTES },
      table,
    },
    { hashKey: randomBytes(ROUTER_KEY_BYTES), isDue },
    before,
  );
}
