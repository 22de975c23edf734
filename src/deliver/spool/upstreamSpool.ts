/**
 * What waits on disk for one upstream.
 *
 * It lets an upstream be away for hours while memory stays bounded and the other upstreams keep receiving.
 */
import type { LaneId } from "../lane.ts";
import type { ItemCounts } from "../../wire/parcel.ts";
import type { ReplicaCount } from "./counts.ts";
import type { SpoolStream } from "./spoolStream.ts";

/** What was in an upstream's folder at the start. */
export interface FoundAtStart {
  /** Whole records with intact headers; payloads are checked when they are read. */
  readonly replicas: readonly ReplicaCount[];
  /** Bytes cut off the ends of files: a process was killed while it wrote them, and acknowledged none of them. */
  readonly tornBytes: number;
  /** Bytes in which no record can be recognised. */
  readonly damagedBytes: number;
  /** Segments that are missing between others. */
  readonly missingSegments: number;
}

export class UpstreamSpool {
  /** Streams that had records at the start. */
  readonly found: readonly LaneId[] = [];
  readonly foundAtStart: FoundAtStart = { replicas: [], tornBytes: 0, damagedBytes: 0, missingSegments: 0 };

  /** The stream of a lane, the same one until it is forgotten. One that is empty has no file. */
  stream(id: LaneId): SpoolStream {
    throw new Error(`not built yet ${id.number}`);
  }

  /** Forgets a stream that is empty, which nobody uses any more; does nothing if it is not empty. */
  forget(id: LaneId): void {
    throw new Error(`not built yet ${id.number}`);
  }

  /** Of its segments on disk, and of appends under way. */
  get bytes(): number {
    throw new Error("not built yet");
  }

  /** Synced and unreleased. */
  get records(): number {
    throw new Error("not built yet");
  }

  /** Of the records, of all replicas. */
  get items(): ItemCounts {
    throw new Error("not built yet");
  }

  /** Of the records of one replica. */
  itemsOf(replica: number): ItemCounts {
    throw new Error(`not built yet ${replica}`);
  }

  /**
   * When the oldest unreleased record was appended, in milliseconds since the epoch; null with none. It is the time of the
   * first record of the oldest segment, so a little early once part of that is released.
   */
  get oldestAt(): number | null {
    throw new Error("not built yet");
  }
}
