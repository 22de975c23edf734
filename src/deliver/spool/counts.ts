/** How much of each replica's data is in a place. */
import type { ItemCounts } from "../../wire/parcel.ts";

export interface ReplicaCount {
  readonly replica: number;
  readonly records: number;
  readonly items: ItemCounts;
}

const NO_ITEMS: ItemCounts = { samples: 0, histograms: 0, exemplars: 0 };

/** A running count. Replicas are few, mostly one. */
export class Tally {
  readonly #byReplica: ReplicaCount[] = [];

  /** Replicas that have records. */
  get replicas(): readonly ReplicaCount[] {
    return this.#byReplica.filter(({ records }) => records > 0);
  }

  get records(): number {
    return this.#byReplica.reduce((sum, { records }) => sum + records, 0);
  }

  add({ replica, records, items }: ReplicaCount): void {
    this.#change(replica, records, items, 1);
  }

  subtract({ replica, records, items }: ReplicaCount): void {
    this.#change(replica, records, items, -1);
  }

  #change(replica: number, records: number, items: ItemCounts, sign: 1 | -1): void {
    const index = this.#byReplica.findIndex((count) => count.replica === replica);
    const before = this.#byReplica[index] ?? { replica, records: 0, items: NO_ITEMS };
    const after = {
      replica,
      records: before.records + sign * records,
      items: plus(before.items, items, sign),
    };
    if (index === -1) this.#byReplica.push(after);
    else this.#byReplica[index] = after;
  }
}

function plus(left: ItemCounts, right: ItemCounts, sign: 1 | -1): ItemCounts {
  return {
    samples: left.samples + sign * right.samples,
    histograms: left.histograms + sign * right.histograms,
    exemplars: left.exemplars + sign * right.exemplars,
  };
}
