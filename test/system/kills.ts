/**
 * The gateway killed (SIGKILL) again and again under load, at moments that a seed decides: while upstreams go away, are away
 * and come back, while it ends in order, and while it starts.
 */
import { setTimeout as pause } from "node:timers/promises";
import type { Random } from "../fuzz/random.ts";
import { CONDITIONS } from "./numberedReceiver.ts";
import { type LoadOptions, type LoadRoute, type NumberedLoad, onlyRoute } from "./numberedLoad.ts";

/** An upstream is behind soon, and comes back soon. @param onOutage what the route does then */
function quickDelivery(onOutage: "spool" | "refuse"): string {
  return (
    `{on_outage: ${onOutage}, remote_timeout: 1s, delivery_deadline: 4s, spool_after: 150ms, ` +
    "breaker: {reset_after: 200ms}, queue_config: {lanes: 2, max_backoff: 200ms}}"
  );
}

function killLoad(...routes: readonly LoadRoute[]): LoadOptions {
  const senders = [null, null, null, "team-a", "team-b"];
  return { routes, slowMs: 300, senders, seriesPerSender: 40, everyMs: 5 };
}

const SPOOLING = onlyRoute(quickDelivery("spool"));

/**
 * What is behind the gateway: one route of three upstreams; the same with two copies of each series; or two routes, one that
 * spools and one that refuses, with series that only one of them takes and series that both do. The senders with a tenant have
 * none for the second, so that they go on while one of its upstreams is away.
 */
export const KILL_SCENES = {
  one: killLoad(SPOOLING),
  replicas: killLoad({ ...SPOOLING, replicas: 2 }),
  routes: killLoad(
    { ...SPOOLING, takes: "[0-9]*[3-9]|1[2-9][0-9]" },
    {
      name: "store",
      receivers: [3, 4],
      replicas: 1,
      delivery: quickDelivery("refuse"),
      takes: "([0-9]|1[01])?[0-6]",
    },
  ),
} as const satisfies Readonly<Record<string, LoadOptions>>;

export type KillScene = keyof typeof KILL_SCENES;

const CHANGES = 4;
/** Requests between two changes, and how long they are waited for: with upstreams away it may take longer. */
const MOST_REQUESTS = 150;
const LONGEST_WAIT_MS = 700;

/** @param tell hears of each kill */
export async function killAgainAndAgain(
  load: NumberedLoad,
  random: Random,
  kills: number,
  tell: (what: string) => void = () => undefined,
): Promise<void> {
  const { gateway, receivers } = load;
  for (let kill = 1; kill <= kills; kill++) {
    const events: string[] = [];
    for (let change = random.below(CHANGES); change >= 0; change--) {
      const slot = random.below(receivers.length);
      const condition = random.once(3) ? "well" : random.pick(CONDITIONS);
      events.push(`vmagent-${slot} ${condition}`);
      await receivers[slot]?.become(condition);
      await load.acknowledgedWithin(random.below(MOST_REQUESTS), random.below(LONGEST_WAIT_MS));
    }
    if (random.once(4)) {
      events.push("asked to end");
      gateway.askToEnd();
      await pause(random.below(LONGEST_WAIT_MS));
    }
    await gateway.kill();
    while (random.once(3)) {
      events.push("killed while it started");
      await gateway.launch();
      await pause(random.below(gateway.startMs));
      await gateway.kill();
    }
    await gateway.start();
    tell(`kill ${kill}: ${events.join(", ")}`);
  }
}
