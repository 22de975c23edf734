/** One of three upstreams away, silent or slow while senders go on: the others and the senders do not notice it. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Rig } from "../peers/rig.ts";
import { type LoadOptions, NOTHING_WRONG, NumberedLoad, onlyRoute } from "./numberedLoad.ts";

const TEST_TIMEOUT_MS = 60_000;
const WITHIN_MS = 20_000;
const REQUESTS = 30;
const MIB = 1024 * 1024;
/** Far below what the outage would take if it were held in memory as objects for long, far above what a heap varies by. */
const GROWTH_BYTES = 128 * MIB;

const LOAD: LoadOptions = {
  routes: [onlyRoute("{remote_timeout: 2s, spool_after: 250ms, breaker: {reset_after: 500ms}}")],
  slowMs: 900,
  senders: [null, null, null, null],
  seriesPerSender: 200,
  everyMs: 5,
};
const TROUBLED = 1;
const OTHERS = [0, 2];

let rig: Rig;

beforeEach(async () => {
  rig = await Rig.create();
});
afterEach(async ({ task }) => {
  if (task.result?.state === "fail") rig.showLogs();
  await rig.end();
});

describe.each([
  { name: "refuses connections", condition: "away" },
  { name: "takes requests and never answers", condition: "silent" },
  { name: "answers after 900 ms", condition: "slow" },
] as const)("one of three upstreams that $name, under load", ({ condition }) => {
  it(
    "costs senders no refusal and the others no sample, and gets all of its own in order, a restart in the middle included",
    async () => {
      const load = await NumberedLoad.start(rig, LOAD);
      const { gateway, receivers } = load;
      await load.acknowledgedAgain(REQUESTS, WITHIN_MS);
      const before = await gateway.metrics();
      await receivers[TROUBLED]?.become(condition);
      await load.acknowledgedAgain(REQUESTS, WITHIN_MS);
      await load.reached(OTHERS, WITHIN_MS);
      expect(spooledFor(await gateway.metrics())).toBeGreaterThan(0);

      expect(await gateway.stop()).toEqual({ code: 0, signal: null });
      await gateway.start();
      await load.acknowledgedAgain(REQUESTS, WITHIN_MS);
      await load.reached(OTHERS, WITHIN_MS);
      const during = await gateway.metrics();
      expect(spooledFor(during)).toBeGreaterThan(0);
      const [memoryBefore, memory] = [before, during].map((metrics) =>
        metrics.sum("process_resident_memory_bytes"),
      );
      expect((memory ?? NaN) - (memoryBefore ?? NaN)).toBeLessThan(GROWTH_BYTES);

      expect(await load.end()).toMatchObject(NOTHING_WRONG);
      expect(load.senders.map(({ pushedBack }) => pushedBack)).toEqual(LOAD.senders.map(() => 0));
    },
    TEST_TIMEOUT_MS,
  );
});

function spooledFor(metrics: Awaited<ReturnType<NumberedLoad["gateway"]["metrics"]>>): number {
  return metrics.sum("stream_metrics_route_samples_spooled", { upstream: `vmagent-${TROUBLED}` });
}
