/**
 * A sample of the series that come in, each with the same chance, from which one can tell how many there are and what a
 * change would do to them.
 *
 * Every distinct series has a place among 2^53, by a hash of its label bytes and tenants that is independent of what places
 * it and the same in every process. The sample holds the series below a threshold that falls as they become more, so which
 * they are depends on the series alone, not on how often or in which order they come. While the threshold is at its top, the
 * sample holds all of them.
 *
 * A series is offered when it is decided, and counts for as long as the decision table has its decision: it leaves when both
 * generations have turned without it. The threshold never rises: what was above it is not in memory, and would be missing
 * until it is decided anew. So after most series have gone the sample is a smaller one, and as fair as before.
 *
 * A reload that empties the table leaves the sample: the next router's begins with what is live in it, and with its threshold.
 * Places stay what they were, so it holds the same of all series that were known as before, and all of them if it did. A
 * series that was handed over counts as if it had been decided at that moment: until both generations have turned, or it is
 * decided in fact, which takes the same place. Until then it stays even if it is refused now. When the set of headers changes
 * in which routes find their tenants, what is one series and what are two changes with it, and with that the places; then the
 * sample begins anew.
 *
 * Not in it are series that are refused, and those that the table cannot keep: a label behind samples, decisions of more than
 * 8 KiB, tenants beyond those that are told apart. Nor are those with more than MAX_LABEL_BYTES of labels.
 */
import { SAMPLE_PLACES, type Salt, type SeriesKey, TABLE_GENERATIONS } from "../engine/engine.ts";
import { xxhash64 } from "../hash/xxhash64.ts";
import { type Estimate, estimateCount } from "./estimate.ts";
import type { RequestTenants, Tenant } from "./tenants.ts";

/** Series that it has for certain, once there are as many; it grows to twice as many before it is trimmed. */
const SAMPLE_SERIES = 16_384;
const MAX_LABEL_BYTES = 8 * 1024;
/** Of all labels together. Series of a few hundred bytes, as they are, take a tenth of it. */
const MAX_SAMPLE_BYTES = 64 * 1024 * 1024;
const NO_SALT: Salt = { low: 0, high: 0 };
const WORD = 2n ** 32n;

/** A series that was sampled, as another configuration needs it to decide it. */
export interface SampledSeries {
  /** Its label fields, byte for byte as they came. */
  readonly labels: Uint8Array;
  /** What its request said in the headers that routes ask for, by name in lower case. */
  readonly tenants: ReadonlyMap<string, Tenant>;
}

/** What the sample holds at one moment. */
export interface SampleState {
  /** Whether it holds all series that are known. */
  readonly isExact: boolean;
  /** The share of all series, above 0, that are in it. */
  readonly fraction: number;
  /** How many distinct series are known. */
  readonly known: Estimate;
  readonly series: readonly SampledSeries[];
}

export interface SampleLimits {
  readonly series: number;
  readonly bytes: number;
}

/** What the sample has to know of a series. */
export interface SampleEntry {
  readonly key: SeriesKey;
  readonly tenants: RequestTenants;
  readonly labels: Uint8Array;
}

/** A series that was handed over, and has not come since. */
interface HandedSeries extends SampledSeries {
  /** How many more times the table turns before it is gone. */
  readonly turnsLeft: number;
}

/** What one sample hands over to the one in its place. */
export interface HandedSample {
  /** In which routes find their tenants. */
  readonly headers: ReadonlySet<string>;
  readonly threshold: number;
  /** By place; the one in its place has it for its own. */
  readonly series: Map<number, HandedSeries>;
}

/** The decision table, as far as the sample asks it. */
export interface SampledTable {
  /** Whether it has the decision of a series in a context. */
  knows(key: SeriesKey, context: number): boolean;
  /** How often its generations have turned. */
  readonly turns: number;
}

export class LiveSample {
  readonly #table: SampledTable;
  /** By route. */
  readonly #headers: readonly (string | null)[];
  readonly #limits: SampleLimits;
  /** By place. */
  readonly #entries: Map<number, SampleEntry | HandedSeries>;
  readonly #salts = new WeakMap<RequestTenants, Salt>();
  readonly #turnsBefore: number;
  #bytes = 0;
  #threshold = SAMPLE_PLACES;

  /**
   * @param headers the header, in lower case, in which each route finds its tenant; null for one that does not ask
   * @param table   without any decision yet
   * @param before  of the sample that this one takes the place of
   */
  constructor(
    headers: readonly (string | null)[],
    table: SampledTable,
    before: HandedSample | null = null,
    limits: SampleLimits = { series: SAMPLE_SERIES, bytes: MAX_SAMPLE_BYTES },
  ) {
    this.#headers = headers;
    this.#table = table;
    this.#turnsBefore = table.turns;
    this.#limits = limits;
    const handed = before !== null && haveSame(before.headers, this.#askedHeaders) ? before : null;
    this.#entries = handed?.series ?? new Map<number, HandedSeries>();
    for (const { labels } of this.#entries.values()) this.#bytes += labels.length;
    if (handed !== null) this.#threshold = handed.threshold;
  }

  get #askedHeaders(): ReadonlySet<string> {
    return new Set(this.#headers.filter((header) => header !== null));
  }

  /** Whether a series at this place, and of so many bytes of labels, is to be offered: nearly none is once there are many. */
  wants(place: number, labelBytes: number): boolean {
    return place < this.#threshold && labelBytes <= MAX_LABEL_BYTES;
  }

  /** What the same labels of another tenant are sampled with, so that they are another series. */
  saltOf(tenants: RequestTenants): Salt {
    if (tenants.byRoute.every((tenant) => tenant === null)) return NO_SALT;
    const known = this.#salts.get(tenants);
    if (known !== undefined) return known;
    const names = tenants.byRoute.map((tenant, route) => [this.#headers[route], tenant?.header]);
    // Routes that ask the same say nothing new.
    const said = [...new Map(names.filter(([, name]) => name !== undefined) as [string, string][])];
    const hash = xxhash64(Buffer.from(JSON.stringify(said.sort())), 0n);
    const salt = { low: Number(hash % WORD), high: Number(hash / WORD) };
    this.#salts.set(tenants, salt);
    return salt;
  }

  /** Takes a series that it wants, unless the table did not keep its decision. One that it has is brought up to date. */
  offer(place: number, entry: SampleEntry): void {
    if (!this.#isKnown(entry)) return;
    this.#bytes += entry.labels.length - (this.#entries.get(place)?.labels.length ?? 0);
    this.#entries.set(place, entry);
    if (this.#entries.size > 2 * this.#limits.series || this.#bytes > this.#limits.bytes) this.#trim();
  }

  get state(): SampleState {
    const fraction = this.#threshold / SAMPLE_PLACES;
    const series: SampledSeries[] = [];
    this.#eachLive((_, each) => series.push(each));
    return { isExact: fraction === 1, fraction, known: estimateCount(series.length, fraction), series };
  }

  /** What the sample in its place begins with. It takes some milliseconds. To be asked before the table is emptied. */
  handOver(): HandedSample {
    const series = new Map<number, HandedSeries>();
    this.#eachLive((place, each) => series.set(place, each));
    return { headers: this.#askedHeaders, threshold: this.#threshold, series };
  }

  /** Gives those that are live now, in a form in which no context, and no key of this table, has a meaning. */
  #eachLive(take: (place: number, series: HandedSeries) => void): void {
    const turns = this.#turns;
    const named = new Map<RequestTenants, ReadonlyMap<string, Tenant>>();
    for (const [place, entry] of this.#entries) {
      if (!this.#isLive(entry, turns)) continue;
      const { labels } = entry;
      if ("turnsLeft" in entry) {
        take(place, { labels, tenants: entry.tenants, turnsLeft: entry.turnsLeft - turns });
        continue;
      }
      const tenants = named.get(entry.tenants) ?? this.#byHeader(entry.tenants);
      named.set(entry.tenants, tenants);
      take(place, { labels, tenants, turnsLeft: TABLE_GENERATIONS });
    }
  }

  #byHeader({ byRoute }: RequestTenants): ReadonlyMap<string, Tenant> {
    const named = byRoute.map((tenant, route) => [this.#headers[route] ?? "", tenant] as const);
    return new Map(named.filter((pair): pair is readonly [string, Tenant] => pair[1] !== null));
  }

  /** How often the table has turned since the beginning. */
  get #turns(): number {
    return this.#table.turns - this.#turnsBefore;
  }

  /** @param turns as they are now */
  #isLive(entry: SampleEntry | HandedSeries, turns: number): boolean {
    if ("turnsLeft" in entry) return entry.turnsLeft > turns;
    // Until it has turned so often, the table has lost nothing, and need not be asked for each of thousands.
    return turns < TABLE_GENERATIONS || this.#isKnown(entry);
  }

  #isKnown({ key, tenants }: SampleEntry): boolean {
    return this.#table.knows(key, tenants.context);
  }

  /** Lets those go that are gone; only if these are not enough, those at the highest places, and lowers the threshold to them. */
  #trim(): void {
    const turns = this.#turns;
    for (const [place, entry] of this.#entries) if (!this.#isLive(entry, turns)) this.#remove(place);
    const { series, bytes } = this.#limits;
    if (this.#entries.size <= series && this.#bytes <= bytes / 2) return;
    const places = Float64Array.from(this.#entries.keys()).sort();
    let kept = 0;
    let keptBytes = 0;
    for (; kept < Math.min(series, places.length - 1); kept++) {
      keptBytes += this.#entries.get(places[kept] ?? 0)?.labels.length ?? 0;
      if (keptBytes > bytes / 2) break;
    }
    this.#threshold = places[kept] ?? 0;
    for (const place of places.subarray(kept)) this.#remove(place);
  }

  #remove(place: number): void {
    this.#bytes -= this.#entries.get(place)?.labels.length ?? 0;
    this.#entries.delete(place);
  }
}

function haveSame(some: ReadonlySet<string>, others: ReadonlySet<string>): boolean {
  return some.size === others.size && [...some].every((header) => others.has(header));
}
