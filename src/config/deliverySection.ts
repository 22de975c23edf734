/** `routes[].delivery`: how parcels are sent. The defaults live here. */
import type { DeliveryOptions } from "../deliver/options.ts";
import { setOf } from "./lists.ts";
import { flag, integer, oneOf, wrong } from "./scalars.ts";
import type { Reader, Section } from "./section.ts";
import { duration, formatDuration } from "./units.ts";

const MAX_INTEGER = 2 ** 31 - 1;
/**
 * A lane is a connection with one request under way. A sender of remote write has one per shard, 50 at most by default; a
 * receiver that is slow with 64 would be slower with more.
 */
const MAX_LANES = 64;

/** All but what the route says elsewhere. */
type DeliverySection = Omit<DeliveryOptions, "tenantHeader">;

export function readDelivery(section: Section): DeliverySection {
  const remoteTimeoutMs = section.optional("remote_timeout", duration({ min: 1 }), 30_000);
  const queue = section.section("queue_config", readQueue);
  const breaker = section.section("breaker", (breaker) => ({
    consecutiveFailures: breaker.optional("consecutive_failures", integer({ min: 1, max: MAX_INTEGER }), 5),
    resetAfterMs: breaker.optional("reset_after", duration({ min: 1 }), 10_000),
  }));
  const deliveryDeadlineMs = section.optional("delivery_deadline", duration({ min: 1 }), 10_000);
  const retryOn = section.optional("retry_on", setOf(retryStatus, "status codes"), []);
  if (deliveryDeadlineMs <= queue.minBackoffMs) {
    const backoff = formatDuration(queue.minBackoffMs);
    const message = `not longer than min_backoff ${backoff}: nothing may be tried again before the sender is answered`;
    section.problems.warning(section.placeOf("delivery_deadline"), message);
  }
  if (deliveryDeadlineMs <= queue.batchSendDeadlineMs) {
    const wait = formatDuration(queue.batchSendDeadlineMs);
    const message = `not longer than batch_send_deadline ${wait}: what waits that long for company is not sent`;
    section.problems.warning(section.placeOf("delivery_deadline"), message);
  }
  const ack = section.optional("ack", oneOf("safe", "enqueued"), "safe");
  const onOutage = section.optional("on_outage", oneOf("spool", "refuse", "drop"), "spool");
  // A tenth of the deadline, up to its default's.
  const usualMs = Math.ceil(Math.min(10_000, deliveryDeadlineMs) / 10);
  const spoolAfterMs = section.optional("spool_after", duration({ min: 1 }), usualMs);
  if (spoolAfterMs >= deliveryDeadlineMs && onOutage === "spool") {
    const message = `not shorter than delivery_deadline ${formatDuration(deliveryDeadlineMs)}: senders are told to come again before their data is spooled`;
    section.problems.warning(section.placeOf("spool_after"), message);
  }
  const sampleAgeLimitMs = section.optional("sample_age_limit", duration({ min: 0 }), 0);
  return {
    remoteTimeoutMs,
    ...queue,
    retryOn,
    breaker,
    deliveryDeadlineMs,
    ack,
    onOutage,
    spoolAfterMs,
    sampleAgeLimitMs,
  };
}

type QueueSection = Pick<
  DeliverySection,
  "lanes" | "maxSamplesPerSend" | "batchSendDeadlineMs" | "minBackoffMs" | "maxBackoffMs" | "retryOnHttp429"
>;

function readQueue(queue: Section): QueueSection {
  const lanes = queue.optional("lanes", integer({ min: 1, max: MAX_LANES }), 1);
  const maxSamplesPerSend = queue.optional(
    "max_samples_per_send",
    integer({ min: 1, max: MAX_INTEGER }),
    10_000,
  );
  const batchSendDeadlineMs = queue.optional("batch_send_deadline", duration({ min: 0 }), 20);
  const minBackoffMs = queue.optional("min_backoff", duration({ min: 1 }), 30);
  const maxBackoffMs = queue.optional("max_backoff", duration({ min: 1 }), 5_000);
  if (minBackoffMs > maxBackoffMs) {
    const given = queue.has("max_backoff") ? "max_backoff" : "min_backoff";
    const got = `min_backoff ${formatDuration(minBackoffMs)}, max_backoff ${formatDuration(maxBackoffMs)}`;
    queue.problems.error(queue.placeOf(given), `want a min_backoff of at most max_backoff; got ${got}`);
  }
  const retryOnHttp429 = queue.optional("retry_on_http_429", flag, true);
  return { lanes, maxSamplesPerSend, batchSendDeadlineMs, minBackoffMs, maxBackoffMs, retryOnHttp429 };
}

/** Further codes to retry; what is retried anyway, or has an option of its own, is a misunderstanding. */
const retryStatus: Reader<number> = (node, problems) => {
  const status = integer({ min: 0 })(node, problems);
  if (status === null) return null;
  if (status === 408) return wrong(node, problems, "codes other than 408, which is retried anyway");
  if (status === 429)
    return wrong(node, problems, "codes other than 429, which queue_config.retry_on_http_429 is for");
  if (status >= 400 && status <= 499) return status;
  return wrong(node, problems, "codes from 400 to 499; 5xx are retried anyway, others never");
};
