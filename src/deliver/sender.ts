/**
 * Delivery to one upstream of one route.
 *
 * The parcels of one deliver() call go one after another, so that the samples of a series arrive in their order; several
 * calls go in parallel. Every parcel that was given here is settled exactly once, and no attempt, wait or close outlasts
 * its bound.
 *
 * At its deadline a call is answered although an attempt may be under way. That attempt goes on, since it may well
 * succeed; until it ends, what the sender sends again can overlap it and overtake it.
 */
import type { Logger } from "pino";
import { backoffMs } from "./backoff.ts";
import { Breaker } from "./breaker.ts";
import type { BreakerState } from "./breaker.ts";
import { classify, isRedirect } from "./classify.ts";
import type { AttemptEnd } from "./classify.ts";
import { formatMs } from "./cleanText.ts";
import { within } from "./deadline.ts";
import { DeliveryLog } from "./deliveryLog.ts";
import type { DeliveryOptions, UpstreamOptions } from "./options.ts";
import type { Parcel } from "../wire/parcel.ts";
import type { ParcelOutcome } from "./outcome.ts";
import { UpstreamClient } from "./upstreamClient.ts";
import type { Exchange } from "./upstreamClient.ts";

/** What a sender tells its owner, who counts. None of these may throw. */
export interface SenderEvents {
  /**
   * Exactly once per parcel given to deliver(), when nothing more will happen with it here: the upstream has it, or it is
   * refused, by the upstream or because it was not accepted in time. Can come after deliver() answered `undelivered`,
   * when an attempt was still under way.
   */
  settled(parcel: Parcel, end: "delivered" | "refused"): void;
  /** One attempt to deliver a parcel ended, after this many milliseconds. */
  attempted(result: AttemptEnd["kind"], durationMs: number): void;
  breakerChanged(state: BreakerState): void;
}

export interface SenderTools {
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** 0 <= random() < 1 */
  readonly random: () => number;
  readonly log: Logger;
  /** The User-Agent header. */
  readonly userAgent: string;
}

type Undelivered = Extract<ParcelOutcome, { kind: "undelivered" }>;
type Retry = Extract<AttemptEnd, { kind: "retry" }>;

/** The least that a sender is asked to stay away while the breaker is open or the gateway stops. */
const MIN_RETRY_AFTER_MS = 1_000;
/**
 * Metadata goes one request at a time, so that it takes one connection of the samples'. A sender sends some tens of
 * requests with metadata in a row; with more than these waiting, the newest is lost, and comes again a minute later.
 */
const MAX_METADATA_WAITING = 64;
const NOT_TRIED = "no attempt could start before the deadline";
/** What becomes of a parcel that is not tried again here. */
const SENDER_KEEPS_IT = "its sender is told to come again";

/** Delivers parcels to one upstream, with its connections, its breaker and its waits. */
export class Sender {
  readonly #delivery: DeliveryOptions;
  readonly #tools: SenderTools;
  readonly #events: SenderEvents;
  readonly #log: DeliveryLog;
  readonly #client: UpstreamClient;
  readonly #breaker: Breaker;
  /** Everything that still has something to settle. */
  readonly #work = new Set<Promise<unknown>>();
  readonly #exchanges = new Set<Exchange>();
  /** End the waits between attempts. */
  readonly #wakers = new Set<() => void>();
  #metadataWaiting = 0;
  /** The end of the metadata before. */
  #metadataTurn: Promise<unknown> = Promise.resolve();
  #lastFailure = "none yet";
  /** The upstream asked to be left alone until then, by Retry-After; on the clock of now(). */
  #notBefore = 0;
  #closing: Promise<void> | null = null;

  /** @throws {DeliveryError} DELIVERY_TLS when the upstream's tls_config cannot be used */
  constructor(
    upstream: UpstreamOptions,
    delivery: DeliveryOptions,
    tools: SenderTools,
    events: SenderEvents,
  ) {
    this.#delivery = delivery;
    this.#tools = tools;
    this.#events = events;
    this.#log = new DeliveryLog(tools.log, upstream.name, tools.now);
    this.#client = new UpstreamClient(upstream, delivery.remoteTimeoutMs, tools.userAgent);
    this.#breaker = new Breaker(delivery.breaker, tools.now, (state) => {
      this.#onBreakerChange(state);
    });
  }

  /**
   * Sends parcels in order, one at a time. Those behind one that is undelivered are not tried; a refused one stops nothing.
   *
   * @param deadline on the clock of now(); the answer is there by then
   * @returns outcomes in the order of the parcels; never rejects
   */
  deliver(parcels: readonly Parcel[], deadline: number): Promise<readonly ParcelOutcome[]> {
    return this.#track(this.#deliverInOrder(parcels, deadline));
  }

  /**
   * Sends metadata in its turn: one attempt, best effort. Lost unless the breaker is closed, and when too much waits.
   *
   * @returns whether it was accepted; never rejects
   */
  async deliverMetadata(body: Uint8Array): Promise<boolean> {
    if (!this.#takesMetadata || this.#metadataWaiting >= MAX_METADATA_WAITING) return false;
    this.#metadataWaiting += 1;
    const turn = this.#metadataTurn.then(async () => {
      const accepted = this.#takesMetadata && (await this.#exchange(body)).kind === "delivered";
      this.#metadataWaiting -= 1;
      return accepted;
    });
    this.#metadataTurn = turn;
    return this.#track(turn);
  }

  get #takesMetadata(): boolean {
    return this.#closing === null && this.#breaker.state === "closed";
  }

  /**
   * Ends delivery: waits between attempts end at once, attempts under way are waited for until `deadline` (on the clock of
   * now()) and then aborted. By its end every parcel is settled, and connections and timers are gone; a second call waits
   * for the first.
   */
  close(deadline: number): Promise<void> {
    this.#closing ??= this.#shutDown(deadline);
    return this.#closing;
  }

  async #shutDown(deadline: number): Promise<void> {
    this.#breaker.shutdown();
    this.#wakeAll();
    await within(this.#idle(), deadline - this.#tools.now());
    for (const exchange of this.#exchanges) exchange.abort("the gateway is shutting down");
    await this.#idle();
    await this.#client.close();
  }

  async #deliverInOrder(parcels: readonly Parcel[], deadline: number): Promise<readonly ParcelOutcome[]> {
    const outcomes: ParcelOutcome[] = [];
    let stop: Undelivered | null = null;
    for (const parcel of parcels) {
      const outcome: ParcelOutcome =
        stop === null ? await this.#deliverParcel(parcel, deadline) : this.#settle(parcel, stop);
      if (outcome.kind === "undelivered") stop = outcome;
      outcomes.push(outcome);
    }
    return outcomes;
  }

  async #deliverParcel(parcel: Parcel, deadline: number): Promise<ParcelOutcome> {
    let attempts = 0;
    let cause = NOT_TRIED;
    for (let round = 0; ; round += 1) {
      const pauseMs = Math.max(0, this.#notBefore - this.#tools.now());
      const obstacle = this.#obstacle(pauseMs > 0 ? this.#lastFailure : cause, pauseMs, deadline);
      if (obstacle !== null) return this.#settle(parcel, obstacle);
      if (pauseMs > 0) {
        await this.#wait(pauseMs + backoffMs(round, this.#delivery, this.#tools.random()));
        continue;
      }

      const end = await this.#attemptBy(deadline, parcel, attempts + 1);
      let waitMs = backoffMs(round, this.#delivery, this.#tools.random());
      if (end === "under_way") return undelivered(noAnswerYet(attempts + 1, cause), waitMs);
      if (end !== "not_admitted") {
        if (end.kind !== "retry") return this.#settle(parcel, end);
        attempts += 1;
        cause = end.cause;
        waitMs = end.retryAfterMs ?? waitMs;
      }

      const stop = this.#obstacle(cause, waitMs, deadline);
      if (end !== "not_admitted") this.#logRetry(parcel, attempts, end, stop === null ? waitMs : null);
      if (stop !== null) return this.#settle(parcel, stop);
      await this.#wait(waitMs);
    }
  }

  /** Makes an attempt, if the breaker lets it; one that is still under way at the deadline settles its parcel itself. */
  async #attemptBy(
    deadline: number,
    parcel: Parcel,
    attempt: number,
  ): Promise<AttemptEnd | "not_admitted" | "under_way"> {
    const running = this.#breaker.begin(
      () => this.#attempt(parcel, attempt),
      (end) => end.kind === "retry" && end.countsAsFailure,
    );
    if (running === null) return "not_admitted";
    const end = await within(running, deadline - this.#tools.now());
    if (end !== null) return end;
    void this.#track(this.#settleLate(parcel, attempt, running));
    return "under_way";
  }

  async #settleLate(parcel: Parcel, attempt: number, running: Promise<AttemptEnd>): Promise<void> {
    const end = await running;
    if (end.kind === "retry") this.#logRetry(parcel, attempt, end, null);
    this.#settle(parcel, end);
  }

  async #attempt(parcel: Parcel, attempt: number): Promise<AttemptEnd> {
    const startedAt = this.#tools.now();
    const end = await this.#exchange(parcel.body);
    this.#events.attempted(end.kind, this.#tools.now() - startedAt);
    if (end.kind === "delivered") this.#log.delivered(parcel, attempt);
    else if (end.kind === "refused") this.#log.refused(parcel, attempt, end.status, end.reply);
    else this.#noteFailure(end);
    return end;
  }

  /** Retry-After speaks for the upstream, not for the one parcel that met it. */
  #noteFailure({ cause, retryAfterMs }: Retry): void {
    this.#lastFailure = cause;
    if (retryAfterMs === null) return;
    this.#notBefore = Math.max(this.#notBefore, this.#tools.now() + retryAfterMs);
  }

  async #exchange(body: Uint8Array): Promise<AttemptEnd> {
    const exchange = this.#client.post(body);
    this.#exchanges.add(exchange);
    const reply = await exchange.reply;
    this.#exchanges.delete(exchange);
    return classify(reply, this.#delivery, this.#tools.now());
  }

  /**
   * Why the next attempt, `waitMs` from now, cannot be made. Half-open is no obstacle: the one attempt that is let through
   * may close the breaker in a moment.
   *
   * @param cause why the last attempt failed
   */
  #obstacle(cause: string, waitMs: number, deadline: number): Undelivered | null {
    const jitter = 1 + this.#tools.random() / 2;
    if (this.#closing !== null)
      return undelivered("the gateway is shutting down", MIN_RETRY_AFTER_MS * jitter);
    if (this.#breaker.state === "open") {
      const openMs = Math.max(MIN_RETRY_AFTER_MS, this.#breaker.untilHalfOpenMs);
      return undelivered(`breaker open, last failure: ${this.#lastFailure}`, openMs * jitter);
    }
    return this.#tools.now() + waitMs >= deadline ? undelivered(cause, waitMs) : null;
  }

  /** Waits, but no longer than until the breaker opens or the sender closes. */
  #wait(waitMs: number): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        clearTimeout(timer);
        this.#wakers.delete(wake);
        resolve();
      };
      const timer = setTimeout(wake, waitMs);
      this.#wakers.add(wake);
    });
  }

  #wakeAll(): void {
    for (const wake of this.#wakers) wake();
  }

  #onBreakerChange(state: BreakerState): void {
    if (state === "open") this.#wakeAll();
    this.#log.breakerChanged(state, this.#delivery.breaker, this.#lastFailure);
    this.#events.breakerChanged(state);
  }

  /** @param waitMs until the next attempt; null if the parcel is given back */
  #logRetry(parcel: Parcel, attempt: number, end: Retry, waitMs: number | null): void {
    const source = end.retryAfterMs === null ? "" : " (Retry-After)";
    const next = waitMs === null ? SENDER_KEEPS_IT : `next attempt in ${formatMs(waitMs)}${source}`;
    if (isRedirect(end.status)) this.#log.redirected(parcel, attempt, end.cause, next);
    else this.#log.retry(parcel, attempt, end.cause, next);
  }

  #settle<T extends AttemptEnd | ParcelOutcome>(parcel: Parcel, end: T): T {
    this.#events.settled(parcel, end.kind === "delivered" ? "delivered" : "refused");
    return end;
  }

  #track<T>(work: Promise<T>): Promise<T> {
    this.#work.add(work);
    void work.finally(() => this.#work.delete(work));
    return work;
  }

  /** Until nothing is under way that has something to settle. */
  async #idle(): Promise<object> {
    while (this.#work.size > 0) await Promise.all(this.#work);
    return this.#work;
  }
}

function undelivered(cause: string, retryAfterMs: number): Undelivered {
  return { kind: "undelivered", cause, retryAfterMs };
}

function noAnswerYet(attempt: number, causeBefore: string): string {
  const before = causeBefore === NOT_TRIED ? "" : `; the last one: ${causeBefore}`;
  return `no answer to attempt ${attempt} by the deadline${before}`;
}
