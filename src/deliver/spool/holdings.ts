/** What an upstream's spool holds now, and who is told of what it loses. The counts change before anybody is told. */
import { Tally } from "./counts.ts";
import type { ReplicaCount } from "./counts.ts";
import type { SpoolDropReason, SpoolEvents } from "./events.ts";

export class Holdings {
  readonly tally = new Tally();
  /** Null until somebody asks for the upstream: then nothing is read or dropped either. */
  events: SpoolEvents | null = null;

  add(count: ReplicaCount): void {
    this.tally.add(count);
  }

  release(count: ReplicaCount): void {
    this.tally.subtract(count);
  }

  drop(reason: SpoolDropReason, counts: readonly ReplicaCount[]): void {
    for (const count of counts) this.tally.subtract(count);
    for (const { replica, records, items } of counts) this.events?.dropped(reason, replica, records, items);
  }

  damaged(bytes: number, file: string): void {
    this.events?.damaged(bytes, file);
  }
}
