/**
 * What a change of the configuration would move. The names here are those of `plan --json` and of POST /api/v1/plan.
 *
 * Shares are of copies: a series has one at each upstream that a route sends it to. They count what was there before the
 * change, so that series which a route takes up newly, however many, do not make a move look smaller.
 */

/** 0 to 1; the standard error is 0 where the share is exact. */
export interface Share {
  readonly share: number;
  readonly standard_error: number;
}

/**
 * What shares are counted over.
 *
 * - `all`: every series that there is.
 * - `sample`: a sample of them.
 * - `synthetic`: a million made-up keys, shared among the routes that change, since too few series were there. They tell what placement does to series of every
 *   kind, and nothing of rules, nor of how lumpy the keys of real series are.
 */
export type Basis = "all" | "sample" | "synthetic";

export interface PlanReport {
  /** That of the route which changes most: what reload.max_moved_ratio is compared with. */
  readonly changed: Share & { readonly route: string | null; readonly basis: Basis };
  /** Of the series that were given; a route may have too few of them. */
  readonly basis: Basis;
  /** Series that were looked at, and how many there are by their number. */
  readonly series: number;
  readonly known: { readonly series: number; readonly standard_error: number };
  /** For items of which time the figures are: a timestamp, or null for those from the newest period on. */
  readonly at: string | null;
  /** In the order of the new configuration, then those that are gone. */
  readonly routes: readonly RouteReport[];
}

export interface RouteReport {
  readonly route: string;
  /** `same`: nothing differs that says which series go where, so nothing moves for certain. */
  readonly change: "same" | "changed" | "new" | "gone";
  readonly basis: Basis;
  /** Copies that have no longer an upstream that they had; those that the route no longer sends anywhere included. */
  readonly moved: Share;
  /** Copies whose task label is another, wherever they go: downstream, their series are others. */
  readonly retasked: Share;
  /** Copies that are moved, retasked or both. */
  readonly changed: Share;
  /** Copies that are moved to nowhere. */
  readonly ceased: Share;
  /** Of the copies after the change, those that the route did not send anywhere before. */
  readonly begun: Share;
  /** Every pair that occurs, with those that stay; the shares add up to 1 unless there was nothing before. */
  readonly from_to: readonly FromTo[];
  /** Live ones before or after the change, in the order of the lists. */
  readonly upstreams: readonly UpstreamReport[];
  readonly balance: { readonly before: Balance | null; readonly after: Balance | null };
  readonly tasks: TaskReport;
  readonly list: ListReport;
  /** By the time of the items, oldest first: what changes for those with timestamps from `from` on, up to the next. */
  readonly eras: readonly EraReport[];
  readonly windows: WindowReport;
  /** Counts among the series that were looked at, which say something of rules where `basis` is synthetic. */
  readonly given: {
    readonly before: number;
    readonly after: number;
    readonly changed: number;
    readonly ceased: number;
    readonly begun: number;
  };
  /** How to write the change so that less moves, and what is to be known of it: a line each. */
  readonly advice: readonly string[];
}

/** All of a report that is counted. */
export type RouteFigures = Omit<RouteReport, "advice">;

export interface FromTo {
  readonly from: string;
  /** null: nowhere. */
  readonly to: string | null;
  readonly share: Share;
}

export interface UpstreamReport {
  readonly name: string;
  /** Of all copies; null while the upstream is not live. */
  readonly before: Share | null;
  readonly after: Share | null;
}

export interface Balance {
  /** The fullest live upstream over the mean of all: by copies, and, where the task is the key, by tasks. 1 is even. */
  readonly copies_max_over_average: number;
  readonly tasks_max_over_average: number | null;
  /** Live upstreams without any task, or, where tasks are not placed, without any of the copies that were counted. */
  readonly empty: readonly string[];
}

export interface TaskReport {
  /** How many there are; null without tasks. */
  readonly before: number | null;
  readonly after: number | null;
  /** Of the numbers that there are before and after, those that move, by number; null unless tasks are placed in both. */
  readonly moved: { readonly tasks: number; readonly of: number } | null;
}

/** What differs between the lists of upstreams. */
export interface ListReport {
  readonly added: readonly string[];
  readonly removed: readonly string[];
  /** At another url under the same name: nothing of theirs moves. */
  readonly readdressed: readonly string[];
  /** Of those removed and added, pairs with one url: an upstream that only its name has changed of, which moves all it has. */
  readonly renamed: readonly { readonly from: string; readonly to: string }[];
  /** Under another number where keys go by numbers. */
  readonly renumbered: readonly string[];
}

export interface EraReport {
  /** null: from the beginning of time. */
  readonly from: string | null;
  readonly moved: Share;
  readonly retasked: Share;
  readonly changed: Share;
}

export interface WindowReport {
  /**
   * - `none`: nothing changes.
   * - `at_reload`: the change takes effect when the configuration does, in each replica by itself.
   * - `at_border`: it takes effect at a timestamp that all replicas agree on.
   * - `in_the_past`: it changes where late items go.
   */
  readonly kind: "none" | "at_reload" | "at_border" | "in_the_past";
  /** Copies with a window under way that gets one part before and one after the change. */
  readonly split: Share;
  /** Where the border is, for `at_border`. */
  readonly from: string | null;
}
