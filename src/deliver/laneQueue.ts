/**
 * The parcels that wait in a lane, in lines of those that may share a request: one for each tenant, and one for each part
 * of a refused batch.
 *
 * The next request takes from the line whose first parcel is the oldest. So no tenant waits behind what came after it, and
 * as many of its parcels go together as fit, however many of other tenants came in between.
 *
 * Many thousands of parcels and tenants can wait for an upstream that does not answer, so nothing here looks at all of
 * them. An empty line is gone: tenants that send no more cost nothing.
 */
import type { LaneParcel } from "./delivery.ts";
import { Line, type BatchLimits, type LineOwner } from "./line.ts";
import { Ranking } from "./ranking.ts";

export class LaneQueue {
  readonly #limits: BatchLimits;
  readonly #tenants = new Map<string | null, Line>();
  /** By when it is their turn: by the age of their first parcels, and before these the groups, the newest first. */
  readonly #turns = new Ranking<Line>();
  readonly #deadlines = new Ranking<Line>();
  #length = 0;
  /** The number of the newest group. */
  #group = 0;

  constructor(limits: BatchLimits) {
    this.#limits = limits;
  }

  get length(): number {
    return this.#length;
  }

  /** The first parcel of the next request. */
  get first(): LaneParcel | undefined {
    return this.#turns.first?.first;
  }

  /** Whether the next request gains nothing by waiting for more. */
  get isWorthSending(): boolean {
    return this.#turns.first?.isWorthSending ?? false;
  }

  /** Infinity when nothing waits. */
  get nearestDeadline(): number {
    return this.#deadlines.lowestRank;
  }

  push(parcel: LaneParcel): void {
    const { tenant } = parcel.delivery;
    let line = this.#tenants.get(tenant);
    if (line === undefined) {
      line = new Line({ kind: "tenant", tenant }, this.#limits);
      this.#tenants.set(tenant, line);
    }
    this.#add(line, [parcel]);
  }

  /** Takes the parcels of the next request: as many of one line as fit, and at least one. */
  takeBatch(): readonly LaneParcel[] {
    const line = this.#turns.first;
    if (line === undefined) return [];
    const taken = line.takeBatch();
    this.#length -= taken.length;
    this.#rank(line);
    return taken;
  }

  /** Puts parcels that were taken in front of all others, as a group: they share a request with each other only. */
  putBackAsGroup(parcels: readonly LaneParcel[]): void {
    this.#group += 1;
    this.#add(new Line({ kind: "group", number: this.#group }, this.#limits), parcels);
  }

  /** Takes all parcels whose deadline is not later than `at`, those of a line in their order. */
  takeDue(at: number): readonly LaneParcel[] {
    const due: LaneParcel[] = [];
    for (let line = this.#deadlines.first; line !== undefined; line = this.#deadlines.first) {
      if (line.nearestDeadline > at) break;
      for (const parcel of line.takeDue(at)) due.push(parcel);
      this.#rank(line);
    }
    this.#length -= due.length;
    return due;
  }

  #add(line: Line, parcels: readonly LaneParcel[]): void {
    for (const parcel of parcels) line.push(parcel);
    this.#length += parcels.length;
    this.#rank(line);
  }

  /** Gives a line that has changed its turn, or has it go if it is empty. */
  #rank(line: Line): void {
    if (line.first === undefined) {
      this.#turns.delete(line);
      this.#deadlines.delete(line);
      if (line.owner.kind === "tenant") this.#tenants.delete(line.owner.tenant);
      return;
    }
    this.#turns.set(line, turnOf(line.owner, line.first));
    this.#deadlines.set(line, line.nearestDeadline);
  }
}

function turnOf(owner: LineOwner, first: LaneParcel): number {
  return owner.kind === "group" ? -owner.number : first.delivery.startedAt;
}
