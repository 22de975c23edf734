/** What a sender needs to know of its upstream and of how to deliver. Made by config/, where the defaults live. */

/** Client credentials for one upstream; secrets are already read from their files. */
export type UpstreamAuth =
  | { readonly kind: "none" }
  | { readonly kind: "basic"; readonly username: string; readonly password: string }
  | { readonly kind: "authorization"; readonly type: string; readonly credentials: string };

/** Prometheus' tls_config; `ca`, `cert` and `key` hold PEM text, already read from their files. */
export interface UpstreamTls {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly serverName?: string;
  readonly insecureSkipVerify: boolean;
  readonly minVersion?: "TLSv1" | "TLSv1.1" | "TLSv1.2" | "TLSv1.3";
  readonly maxVersion?: "TLSv1" | "TLSv1.1" | "TLSv1.2" | "TLSv1.3";
}

export interface UpstreamOptions {
  /** Stable name: in metrics, logs and explain, and what placement knows an upstream by. */
  readonly name: string;
  /** http or https, without user information. */
  readonly url: URL;
  readonly auth: UpstreamAuth;
  /** Further request headers; none of those that the protocol reserves. */
  readonly headers: Readonly<Record<string, string>>;
  readonly tls: UpstreamTls;
  /**
   * From this time on, on the clock of now(), it takes nothing more: the last topology period that has it is over for long.
   * Without it: never.
   */
  readonly retiresAtMs?: number;
}

export interface DeliveryOptions {
  /** Ordered queues with one request in flight each; each tenant has so many. */
  readonly lanes: number;
  /** Samples, histograms and exemplars in one request; a single parcel may exceed it. */
  readonly maxSamplesPerSend: number;
  /** How long an idle lane waits for company when it holds less than is worth a request. */
  readonly batchSendDeadlineMs: number;
  /** Hard deadline of one attempt, from taking a connection to the end of the response. */
  readonly remoteTimeoutMs: number;
  /** Bounds of the fully jittered exponential backoff between attempts. */
  readonly minBackoffMs: number;
  readonly maxBackoffMs: number;
  readonly retryOnHttp429: boolean;
  /** 4xx codes to retry besides 408 and 429, e.g. 404 behind an ingress. */
  readonly retryOn: readonly number[];
  readonly breaker: BreakerOptions;
  /** The header that tells the upstream whose data a request holds; null: none does. */
  readonly tenantHeader: string | null;
  /** The sender of a request has its answer this long after the request was read. */
  readonly deliveryDeadlineMs: number;
  /**
   * When a sender is told that its data is accepted: once every upstream has it or it is in the spool (safe), or once it is in
   * memory (enqueued), where the end of the process loses it.
   */
  readonly ack: "safe" | "enqueued";
  /** What becomes of data for an upstream that is away or too slow. */
  readonly onOutage: "spool" | "refuse" | "drop";
  /** How old a lane's oldest parcel may be before that is so. */
  readonly spoolAfterMs: number;
  /** What is older when it is to be sent is dropped; 0: nothing is too old. */
  readonly sampleAgeLimitMs: number;
}

/** The delivery options in force, in one place for all who go by them: a reload may change them while they work. */
export interface DeliveryInForce {
  options: DeliveryOptions;
}

export interface BreakerOptions {
  /**
   * Failed attempts in a row that open the breaker: network errors, timeouts, 3xx, 408 and 5xx, the latter three unless
   * the request named its tenant.
   */
  readonly consecutiveFailures: number;
  /** How long it stays open before one attempt is let through. */
  readonly resetAfterMs: number;
}
