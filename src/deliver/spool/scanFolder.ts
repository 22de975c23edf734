/** Finds what an earlier process left in the folder of an upstream. */
import { join } from "node:path";
import type { LaneId } from "../lane.ts";
import { Tally } from "./counts.ts";
import type { ReplicaCount } from "./counts.ts";
import { parsePositions, POSITIONS_FILE } from "./positions.ts";
import type { Owner } from "./record.ts";
import { scanSegment } from "./scanSegment.ts";
import type { Segment } from "./segment.ts";
import { parseSegmentName } from "./segmentName.ts";
import type { SegmentName } from "./segmentName.ts";
import type { SpoolTools } from "./tools.ts";
import { hasCode } from "./upstreamFolder.ts";

/** What was in an upstream's folder at the start. */
export interface FoundAtStart {
  /** Whole records with intact headers; payloads are checked when they are read. */
  readonly replicas: readonly ReplicaCount[];
  /** Bytes cut off the ends of files: a process was killed while it wrote them, and acknowledged none of them. */
  readonly tornBytes: number;
  /** Bytes in which no record can be recognised. */
  readonly damagedBytes: number;
}

export interface FoundStream {
  readonly id: LaneId;
  /** Oldest first. */
  readonly segments: Segment[];
}

export interface FoundFolder {
  /** Whose it is; null if no record tells. */
  readonly owner: Pick<Owner, "route" | "upstream"> | null;
  /** By stream key. */
  readonly streams: ReadonlyMap<string, FoundStream>;
  /** Segments without a record that is wanted. */
  readonly spent: readonly Segment[];
  readonly lastSequence: number;
  readonly found: FoundAtStart;
}

type FoundName = SegmentName & { readonly isAside: boolean };

/** @param belongs whether the folder is that of this owner */
export async function scanFolder(
  tools: SpoolTools,
  path: string,
  belongs: (owner: Owner) => boolean,
): Promise<FoundFolder> {
  const entries = await tools.files.list(path);
  const names = entries.map(({ name }) => parseSegmentName(name)).filter((name) => name !== null);
  names.sort((left, right) => left.sequence - right.sequence);
  const positions = await readPositions(tools, join(path, POSITIONS_FILE));
  const streams = new Map<string, FoundStream>();
  const spent: Segment[] = [];
  const tally = new Tally();
  let owner: Owner | null = null;
  let [tornBytes, damagedBytes] = [0, 0];
  for (const name of names) {
    if (name.isAside) continue;
    const scanned = await scanSegment(tools, path, name, positions, belongs);
    tornBytes += scanned.tornBytes;
    damagedBytes += scanned.damagedBytes;
    owner ??= scanned.owner;
    for (const count of scanned.segment.unread.replicas) tally.add(count);
    if (scanned.owner === null || scanned.segment.unread.records === 0) {
      spent.push(scanned.segment);
    } else {
      const stream = streams.get(name.stream) ?? { id: scanned.owner.lane, segments: [] };
      stream.segments.push(scanned.segment);
      streams.set(name.stream, stream);
    }
  }
  reportMissing(tools, path, names);
  const found = { replicas: tally.replicas, tornBytes, damagedBytes };
  return { owner, streams, spent, lastSequence: names.at(-1)?.sequence ?? 0, found };
}

/** Segments are removed oldest first: one that is gone between two others is lost. */
function reportMissing(tools: SpoolTools, path: string, names: readonly FoundName[]): void {
  const last = new Map<string, number>();
  for (const { stream, sequence, previous } of names) {
    const before = last.get(stream);
    if (before !== undefined && previous > before) {
      tools.log.error(
        `${path}: segment ${previous} of ${stream} is missing, between ${before} and ${sequence}`,
      );
    }
    last.set(stream, sequence);
  }
}

async function readPositions(tools: SpoolTools, path: string): Promise<ReadonlyMap<string, number>> {
  try {
    const file = await tools.files.open(path, "read");
    try {
      const bytes = Buffer.alloc(await file.size());
      return parsePositions(bytes.subarray(0, await file.read(bytes, 0)));
    } finally {
      await file.close();
    }
  } catch (error) {
    if (!hasCode(error, "ENOENT")) throw error;
    return new Map();
  }
}
