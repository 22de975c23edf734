/**
 * Attempts to reach one upstream: begun if its breaker admits them, judged, counted and logged when they end.
 *
 * What was learned from one attempt speaks for the upstream, so all lanes share it: the breaker, the last failure, and a
 * Retry-After. Not so when the upstream answers to a request that names its tenant: that may be about this tenant, such as
 * a limit of it, and must not stop the others. Who may send when, and what becomes of parcels, is the lanes' matter.
 */
import type { Batch } from "./batch.ts";
import { Breaker } from "./breaker.ts";
import type { BreakerState } from "./breaker.ts";
import { classify, describeToOthers } from "./classify.ts";
import type { AttemptEnd, Retry } from "./classify.ts";
import type { DeliveryLog } from "./deliveryLog.ts";
import type { Exchange } from "./exchange.ts";
import type { BreakerOptions, DeliveryInForce } from "./options.ts";
import { undelivered } from "./outcome.ts";
import type { Undelivered } from "./outcome.ts";
import type { Pause } from "./pauses.ts";
import type { UpstreamClient } from "./upstreamClient.ts";

/** What the lanes and their owner are told. None of these may throw. */
export interface AttemptEvents {
  /** One attempt to send a batch ended, after this many milliseconds. */
  attempted(result: AttemptEnd["kind"], durationMs: number): void;
  /** The upstream has accepted data of which nothing is newer than this; milliseconds since the epoch. */
  delivered(newestTimestampMs: number): void;
  breakerChanged(state: BreakerState): void;
  /** The upstream asked to be left alone: by this tenant, or by all if that is null. */
  throttled(tenant: string | null, pause: Pause): void;
  /** Nothing is under way any more. */
  idle(): void;
}

interface Tools {
  readonly now: () => number;
  readonly random: () => number;
}

/** The least that a sender is asked to stay away while the breaker is open or the gateway stops. */
const MIN_RETRY_AFTER_MS = 1_000;

export class Attempts {
  #client: UpstreamClient;
  /** Those of before, over whose connections something may be under way still. */
  readonly #retired = new Set<UpstreamClient>();
  readonly #delivery: Readonly<DeliveryInForce>;
  readonly #tools: Tools;
  readonly #log: DeliveryLog;
  readonly #events: AttemptEvents;
  readonly #breaker: Breaker;
  /** Under way, metadata included. */
  readonly #exchanges = new Set<Exchange>();
  #onIdle: (() => void) | null = null;
  /** Of those that speak for the upstream. */
  #lastFailure: Pick<Retry, "status" | "cause"> = { status: null, cause: "none yet" };
  #isClosing = false;
  #isFinished = false;
  #giveUpAt = Infinity;
  #giveUpTimer: NodeJS.Timeout | undefined;

  constructor(
    client: UpstreamClient,
    delivery: Readonly<DeliveryInForce>,
    tools: Tools,
    log: DeliveryLog,
    events: AttemptEvents,
  ) {
    this.#client = client;
    this.#delivery = delivery;
    this.#tools = tools;
    this.#log = log;
    this.#events = events;
    const breakerOptions = (): BreakerOptions => delivery.options.breaker;
    this.#breaker = new Breaker(breakerOptions, tools.now, (state) => {
      log.breakerChanged(state, breakerOptions(), this.#lastFailure.cause);
      events.breakerChanged(state);
    });
  }

  /** How requests go out now. */
  get client(): UpstreamClient {
    return this.#client;
  }

  /** Has what begins from now on go out by another client. What is under way ends as it would have. */
  use(client: UpstreamClient): void {
    if (client === this.#client) return;
    const before = this.#client;
    this.#client = client;
    this.#retired.add(before);
    void before.retire().then(() => this.#retired.delete(before));
  }

  /** Whether nothing is under way, metadata included. */
  get isIdle(): boolean {
    return this.#exchanges.size === 0;
  }

  /** Whether the gateway is about to go, so that nothing begins any more. */
  get isClosing(): boolean {
    return this.#isClosing;
  }

  /** Whether begin() may be called now. */
  get mayBegin(): boolean {
    return !this.#isClosing && this.#breaker.admits;
  }

  /** Whether metadata goes out: it is no trial for a breaker that is not closed. */
  get takesMetadata(): boolean {
    return !this.#isClosing && this.#breaker.state === "closed";
  }

  /**
   * Why nothing that waits can be sent, which its senders are told at once; null if something can be. Half-open is no
   * such obstacle: the one attempt that is let through may close the breaker in a moment.
   *
   * @param lastFailure told as the reason for an open breaker; without it, what everybody may hear of that
   */
  obstacle(lastFailure = describeToOthers(this.#lastFailure)): Undelivered | null {
    if (this.#isClosing)
      return undelivered("the gateway is shutting down", this.#jittered(MIN_RETRY_AFTER_MS));
    if (this.#breaker.state !== "open") return null;
    const openMs = Math.max(MIN_RETRY_AFTER_MS, this.#breaker.untilHalfOpenMs);
    return undelivered(`breaker open, last failure: ${lastFailure}`, this.#jittered(openMs));
  }

  /**
   * Begins to send a batch, which mayBegin allowed.
   *
   * @param onEnd called once, after this has returned, when the end is counted; does not throw
   */
  begin(batch: Batch, onEnd: (end: AttemptEnd) => void): void {
    batch.attempts += 1;
    const startedAt = this.#tools.now();
    const period = this.#breaker.begin();
    this.#exchange(batch.body, batch.tenant, (end) => {
      this.#events.attempted(end.kind, this.#tools.now() - startedAt);
      this.#breaker.end(period, this.#judge(batch, end));
      onEnd(end);
    });
  }

  /** Sends metadata: one attempt, which neither the breaker nor anybody's count takes notice of. */
  sendMetadata(body: Uint8Array, tenant: string | null): Promise<boolean> {
    return new Promise((resolve) => {
      this.#exchange(body, tenant, (end) => {
        resolve(end.kind === "delivered");
      });
    });
  }

  /** From now on nothing begins and the breaker rests; what is under way goes on. */
  stopBeginning(): void {
    this.#isClosing = true;
    this.#breaker.shutdown();
  }

  /** What is under way then is given up. Of several calls, the earliest time counts. @param waitMs from now */
  giveUpIn(waitMs: number): void {
    const at = this.#tools.now() + waitMs;
    if (at >= this.#giveUpAt || this.#isFinished) return;
    this.#giveUpAt = at;
    clearTimeout(this.#giveUpTimer);
    this.#giveUpTimer = setTimeout(
      () => {
        for (const exchange of this.#exchanges) exchange.abort("the gateway is shutting down");
      },
      Math.max(0, waitMs),
    );
  }

  /** Waits until nothing is under way. */
  async finish(): Promise<void> {
    if (this.#exchanges.size > 0) {
      await new Promise<void>((resolve) => {
        this.#onIdle = resolve;
      });
    }
    this.#isFinished = true;
    clearTimeout(this.#giveUpTimer);
    await Promise.all([this.#client, ...this.#retired].map((client) => client.close()));
  }

  #exchange(body: Uint8Array, tenant: string | null, onEnd: (end: AttemptEnd) => void): void {
    const exchange = this.#client.post(body, tenant, (reply) => {
      this.#exchanges.delete(exchange);
      onEnd(classify(reply, this.#delivery.options, this.#tools.now()));
      if (this.#exchanges.size > 0) return;
      this.#onIdle?.();
      this.#events.idle();
    });
    this.#exchanges.add(exchange);
  }

  /** @returns whether it speaks against the upstream */
  #judge(batch: Batch, end: AttemptEnd): boolean {
    switch (end.kind) {
      case "delivered":
        this.#log.delivered(batch);
        this.#events.delivered(batch.newestTimestampMs);
        return false;
      case "refused":
        this.#log.refused(batch, end.status, end.reply);
        return false;
      case "retry":
        return this.#judgeFailure(batch.tenant, end);
    }
  }

  #judgeFailure(tenant: string | null, failure: Retry): boolean {
    const isAnswer = failure.status !== null;
    const concerned = isAnswer && this.#delivery.options.tenantHeader !== null ? tenant : null;
    if (failure.retryAfterMs !== null) {
      const until = this.#tools.now() + failure.retryAfterMs;
      this.#events.throttled(concerned, { until, cause: describeToOthers(failure) });
    }
    if (concerned !== null) return false;
    this.#lastFailure = failure;
    return failure.countsAsFailure;
  }

  /** Spread by chance, so that senders do not all come back at once. */
  #jittered(waitMs: number): number {
    return waitMs * (1 + this.#tools.random() / 2);
  }
}
