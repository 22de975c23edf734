/**
 * Routes made-up requests, so that a process has its code compiled when the first senders come: a new series costs hundreds
 * of microseconds before that, and microseconds afterwards.
 */
import { encodeLabelField, seriesRequest } from "../wire/labelField.ts";
import { compressBlock } from "../wire/snappy.ts";
import type { Router } from "./router.ts";
import { type RequestTenants, SHARED_CONTEXT } from "./tenants.ts";

const REQUESTS = 8;
const SERIES = 250;
const NAMES = [
  "__name__",
  "cluster",
  "container",
  "endpoint",
  "id",
  "image",
  "instance",
  "job",
  "le",
  "namespace",
  "node",
];
/** A sample of value 1 at 1 ms. */
const SAMPLE = Uint8Array.of(0x12, 0x0b, 0x09, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0x10, 1);

/** No route asks whose these are. */
const TENANTS: RequestTenants = { context: SHARED_CONTEXT, byRoute: [] };

const encoder = new TextEncoder();

/**
 * @param router one that is used for nothing else: it gets a table of series that nobody sent
 * @param isOver whether it has taken long enough: many rules make a new series cost milliseconds
 */
export function warmUp(router: Router, isOver: () => boolean): void {
  for (let request = 0; request < REQUESTS; request++) {
    const fields = Array.from({ length: SERIES }, (_, series) => madeUpSeries(request * SERIES + series));
    const block = compressBlock(new Uint8Array(Buffer.concat(fields)));
    // New the first time, known the second.
    for (const steps of [router.route([block], TENANTS), router.route([block], TENANTS)]) {
      while (steps.next().done !== true) if (isOver()) return;
      if (isOver()) return;
    }
  }
}

function madeUpSeries(number: number): Uint8Array {
  const labels = NAMES.map((name) =>
    encodeLabelField(encoder.encode(name), encoder.encode(`${name}-${number}-of-many`)),
  );
  return seriesRequest(Buffer.concat([...labels, SAMPLE]));
}
