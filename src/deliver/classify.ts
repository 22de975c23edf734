/**
 * What the end of an attempt means, decided once and here: for the batch, for the next attempt and for the breaker.
 *
 * Pure: the table in test/deliver/classify.test.ts is the whole of it.
 */
import { cleanText } from "./cleanText.ts";
import type { DeliveryOptions } from "./options.ts";
import { parseRetryAfter } from "./retryAfter.ts";

/** How an HTTP exchange ended, unjudged. */
export type Reply =
  | {
      readonly kind: "answered";
      readonly status: number;
      /** The beginning of the body, as it came; empty with 2xx. */
      readonly text: string;
      readonly retryAfter: string | null;
      readonly location: string | null;
    }
  /** No whole response head arrived: network, TLS, timeout, broken HTTP. `cause` is for a person. */
  | { readonly kind: "failed"; readonly cause: string };

/** How an attempt ended. */
export type AttemptEnd =
  | { readonly kind: "delivered" }
  | { readonly kind: "refused"; readonly status: number; readonly reply: string }
  | {
      readonly kind: "retry";
      /** null: there was no answer. */
      readonly status: number | null;
      /** One clean line for a person. */
      readonly cause: string;
      /** Whether the upstream is unwell, which the breaker counts. One that throttles is not. */
      readonly countsAsFailure: boolean;
      /** The wait that the upstream asked for, within limits; null if it did not. */
      readonly retryAfterMs: number | null;
    };

export type Retry = Extract<AttemptEnd, { kind: "retry" }>;

type StatusClass = "delivered" | "refused" | "throttled" | "unwell";

/** A 4xx text goes to the sender, whose log has room for 1,024 bytes of it and of what else is in the answer. */
const MAX_REPLY_BYTES = 512;
/** A longer Retry-After is shortened to this: an upstream that is back should not wait for its data. */
export const MAX_RETRY_AFTER_MS = 60_000;

/** @param nowMs milliseconds since the epoch, for a Retry-After that is a date */
export function classify(
  reply: Reply,
  options: Pick<DeliveryOptions, "retryOnHttp429" | "retryOn" | "minBackoffMs">,
  nowMs: number,
): AttemptEnd {
  if (reply.kind === "failed") {
    const cause = cleanText(reply.cause, MAX_REPLY_BYTES);
    return { kind: "retry", status: null, cause, countsAsFailure: true, retryAfterMs: null };
  }
  const { status } = reply;
  const statusClass = classifyStatus(status, options);
  switch (statusClass) {
    case "delivered":
      return { kind: "delivered" };
    case "refused":
      return { kind: "refused", status, reply: cleanText(reply.text, MAX_REPLY_BYTES) };
    case "throttled":
    case "unwell": {
      const askedMs = parseRetryAfter(reply.retryAfter, nowMs);
      const retryAfterMs =
        askedMs === null ? null : Math.max(options.minBackoffMs, Math.min(askedMs, MAX_RETRY_AFTER_MS));
      const cause = describeAnswer(status, reply.text, reply.location);
      return { kind: "retry", status, cause, countsAsFailure: statusClass === "unwell", retryAfterMs };
    }
  }
}

/**
 * What those may hear of a failure who had nothing in the batch: the words of a reply can be about another's data, its
 * status is not. Without an answer there are no such words.
 */
export function describeToOthers({ status, cause }: Pick<Retry, "status" | "cause">): string {
  return status === null ? cause : String(status);
}

/** Redirects are not followed: 301 to 303 would turn the POST into a GET, and a 2xx for that means nothing. */
export function isRedirect(status: number | null): boolean {
  return status !== null && status >= 300 && status < 400;
}

function classifyStatus(
  status: number,
  options: Pick<DeliveryOptions, "retryOnHttp429" | "retryOn">,
): StatusClass {
  if (status >= 200 && status < 300) return "delivered";
  // Redirects, 5xx, and numbers that HTTP does not have.
  if (status < 400 || status >= 500) return "unwell";
  if (status === 408) return "unwell";
  if (status === 429) return options.retryOnHttp429 ? "throttled" : "refused";
  return options.retryOn.includes(status) ? "throttled" : "refused";
}

function describeAnswer(status: number, text: string, location: string | null): string {
  if (isRedirect(status) && location !== null) {
    return cleanText(`${status} to ${withoutSecretParts(location)}, which is not followed`, MAX_REPLY_BYTES);
  }
  const words = cleanText(text, MAX_REPLY_BYTES);
  return words === "" ? String(status) : `${status} (${words})`;
}

/** User information and query of a URL may hold credentials; scheme, host and path say where it points. */
function withoutSecretParts(location: string): string {
  return location.replace(/[?#].*$/su, "").replace(/\/\/[^/]*@/u, "//");
}
