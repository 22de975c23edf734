/**
 * What was accepted of requests that were answered 503 all the same, since other parts of them could not be delivered.
 *
 * Their senders come again with the same bytes, and what was accepted is not sent twice then. It is remembered for a while,
 * by this process alone: a sender that comes to another one, or later, has it sent again, as remote write allows.
 *
 * Two requests are the same when their bodies and what routes take for their tenants are, whichever path they come by: all
 * write paths do the same, and nothing else in a request decides where its series go.
 */

/** Prometheus backs off for 5 s at most between two attempts, vmagent for a minute. */
const REMEMBERED_MS = 5 * 60_000;
/** With more requests than these, the oldest is forgotten. */
const MAX_REQUESTS = 10_000;

/** Which parcels of a request were accepted, by their place in it. */
export class AcceptedParcels {
  readonly #places = new Set<string>();

  /** @param consignment number of the consignment in its request, and of the parcel in that */
  add(consignment: number, parcel: number): void {
    this.#places.add(`${consignment} ${parcel}`);
  }

  has(consignment: number, parcel: number): boolean {
    return this.#places.size > 0 && this.#places.has(`${consignment} ${parcel}`);
  }
}

interface Remembered {
  readonly until: number;
  readonly accepted: AcceptedParcels;
}

const NOTHING = new AcceptedParcels();

export class Resends {
  readonly #now: () => number;
  /** The oldest first. */
  readonly #requests = new Map<string, Remembered>();

  /** @param now milliseconds since the epoch */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** How many requests are remembered. */
  get size(): number {
    return this.#requests.size;
  }

  /**
   * Remembers a request that is answered 503.
   *
   * @param key      of its body and of whatever its parcels depend on besides
   * @param accepted may grow afterwards, as attempts end that were under way
   */
  remember(key: string, accepted: AcceptedParcels): void {
    this.#forgetOld();
    this.#requests.delete(key);
    this.#requests.set(key, { until: this.#now() + REMEMBERED_MS, accepted });
    const [oldest] = this.#requests.keys();
    if (this.#requests.size > MAX_REQUESTS && oldest !== undefined) this.#requests.delete(oldest);
  }

  /** What was accepted of a request when it came before; it is forgotten with that, unless it is remembered again. */
  take(key: string): AcceptedParcels {
    this.#forgetOld();
    const found = this.#requests.get(key);
    this.#requests.delete(key);
    return found?.accepted ?? NOTHING;
  }

  #forgetOld(): void {
    for (const [key, { until }] of this.#requests) {
      if (until > this.#now()) return;
      this.#requests.delete(key);
    }
  }
}
