/** A record that the caller of a stream has in memory. Nothing in it is for the caller. */
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

  constructor(segment: Segment, start: number, end: number, replica: number, items: ItemCounts) {
    this.segment = segment;
    this.start = start;
    this.end = end;
    this.replica = replica;
    this.items = items;
  }
}
