/**
 * Until when an upstream asked to be left alone: by one tenant, or by all.
 *
 * Kept beside the lanes, which go when they are empty: what comes next has to wait as well.
 */

export interface Pause {
  /** On the clock of now(). */
  readonly until: number;
  /** For a person; nothing that only some may read. */
  readonly cause: string;
}

export const NO_PAUSE: Pause = { until: 0, cause: "" };

/** With more tenants than these paused, the oldest pause is forgotten, which costs the upstream a request. */
const MAX_TENANTS = 10_000;

export class Pauses {
  readonly #now: () => number;
  #ofAll = NO_PAUSE;
  /** In the order in which they were asked for. */
  readonly #ofTenants = new Map<string, Pause>();

  constructor(now: () => number) {
    this.#now = now;
  }

  /** How many are held, of tenants. */
  get size(): number {
    return this.#ofTenants.size;
  }

  /** @param tenant null for all */
  add(tenant: string | null, pause: Pause): void {
    if (tenant === null) {
      this.#ofAll = laterOf(this.#ofAll, pause);
      return;
    }
    const longest = laterOf(this.#ofTenants.get(tenant) ?? NO_PAUSE, pause);
    this.#ofTenants.delete(tenant);
    this.#ofTenants.set(tenant, longest);
    for (const [oldest, { until }] of this.#ofTenants) {
      if (until > this.#now() && this.#ofTenants.size <= MAX_TENANTS) break;
      this.#ofTenants.delete(oldest);
    }
  }

  /** The one that holds for a tenant the longest; null for what has none. It may be over. */
  of(tenant: string | null): Pause {
    if (tenant === null) return this.#ofAll;
    return laterOf(this.#ofAll, this.#ofTenants.get(tenant) ?? NO_PAUSE);
  }
}

export function laterOf(one: Pause, other: Pause): Pause {
  return other.until > one.until ? other : one;
}
