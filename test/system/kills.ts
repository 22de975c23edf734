/**
 * The gateway killed (SIGKILL) again and again under load, at moments that a seed decides: while upstreams go away, are away
 * and come back, while it ends in order, and while it starts.
 */
import { setTimeout as pause } from "node:timers/promises";
import type { Random } from "../fuzz/random.ts";
import { CONDITIONS } from "./numberedReceiver.ts";
import type { LoadOptions, NumberedLoad } from "./numberedLoad.ts";

/** An upstream is behind soon, and comes back soon. */
export const KILL_LOAD: LoadOptions = {
  receivers: 3,
  slowMs: 300,
  senders: [null, null, null, "team-a", "team-b"],
  seriesPerSender: 40,
  everyMs: 5,
  delivery:
    "{remote_timeout: 1s, delivery_deadline: 4s, spool_after: 150ms, breaker: {reset_after: 200ms}, " +
    "queue_config: {lanes: 2, max_backoff: 200ms}}",
};

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
