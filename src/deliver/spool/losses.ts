/** Tells the owner of an upstream's spool what is lost. */
import type { ReplicaCount } from "./counts.ts";
import type { SpoolDropReason, SpoolEvents } from "./events.ts";

export class Losses {
  /** Null until somebody asks for the upstream: nothing is read or written before that, and discard() tells nobody. */
  events: SpoolEvents | null = null;

  drop(reason: SpoolDropReason, counts: readonly ReplicaCount[]): void {
    for (const { replica, items } of counts) this.events?.dropped(reason, replica, items);
  }

  damaged(bytes: number): void {
    this.events?.damaged(bytes);
  }
}
