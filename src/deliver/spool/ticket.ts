/** A record that the caller of a stream has in memory. Nothing in it is for the caller but what it counts. */
import type { ItemCounts } from "../../wire/parcel.ts";
import type { ReplicaCount } from "./counts.ts";
import type { Segment } from "./segment.ts";

export class Ticket implements ReplicaCount {
  readonly replica: number;
  readonly records = 1;
  readonly items: ItemCounts;
  readonly segment: Segment;
  /** Bytes [start, end) of the segment. */
  readonly start: number;
  readonly end: number;
  /** `out`: the caller has it; `given_up`: it is to be given out again; `done`: it is in the spool no more. */
  state: "out" | "given_up" | "done" = "out";

  constructor(segment: Segment, start: number, end: number, replica: number, items: ItemCounts) {
    this.segment = segment;
    this.start = start;
    this.end = end;
    this.replica = replica;
    this.items = items;
  }
}

/** In the order in which they stand in their stream. */
export function byPlace(left: Ticket, right: Ticket): number {
  return left.segment.name.sequence - right.segment.name.sequence || left.start - right.start;
}
