/**
 * Finds the records of a segment of an earlier process, by its summary or by their headers: payloads are not read.
 *
 * Behind damage it goes on with the next intact header. A record that ends too early at the end of the file was being written
 * when the process ended: it was not acknowledged, and is cut off.
 */
import { join } from "node:path";
import type { SpoolFile } from "./files.ts";
import { decodeOwner, SUMMARY } from "./record.ts";
import type { Owner } from "./record.ts";
import { RecordReader } from "./recordReader.ts";
import { Segment } from "./segment.ts";
import { formatSegmentName, streamKey } from "./segmentName.ts";
import type { SegmentName } from "./segmentName.ts";
import { decodeSummary, SUMMARY_PLACE_BYTES } from "./summary.ts";
import type { SpoolTools } from "./tools.ts";
import { describe } from "./upstreamFolder.ts";

/** What the disk reads at least. */
const WINDOW_BYTES = 4096;

export interface ScannedSegment {
  readonly segment: Segment;
  /** Of its first intact record; null if it has none. */
  readonly owner: Owner | null;
  readonly tornBytes: number;
  readonly damagedBytes: number;
}

/**
 * @param positions up to where the earlier process released files, by their names
 * @param belongs    whether the folder is that of this owner
 */
export async function scanSegment(
  tools: SpoolTools,
  folder: string,
  name: SegmentName,
  positions: ReadonlyMap<string, number>,
  belongs: (owner: Owner) => boolean,
): Promise<ScannedSegment> {
  const fileName = formatSegmentName(name);
  const path = join(folder, fileName);
  const file = await tools.files.open(path, "write");
  try {
    return await new Scan(tools, path, file, name, await file.size(), belongs).run(
      positions.get(fileName) ?? 0,
    );
  } finally {
    await file.close();
  }
}

class Scan {
  readonly #tools: SpoolTools;
  readonly #path: string;
  readonly #file: SpoolFile;
  readonly #segment: Segment;
  readonly #reader: RecordReader;
  readonly #belongs: (owner: Owner) => boolean;
  #owner: Owner | null = null;
  #ownerBytes: Buffer | null = null;
  #isUnreadable = false;
  #tornBytes = 0;
  #damagedBytes = 0;

  constructor(
    tools: SpoolTools,
    path: string,
    file: SpoolFile,
    name: SegmentName,
    size: number,
    belongs: (owner: Owner) => boolean,
  ) {
    this.#tools = tools;
    this.#path = path;
    this.#file = file;
    this.#belongs = belongs;
    this.#segment = new Segment(name, 0);
    this.#segment.size = size;
    this.#segment.isSealed = true;
    this.#reader = new RecordReader({
      read: (target, position) => this.#read(target, position),
      start: this.#segment.recordStart,
      end: size,
      windowBytes: WINDOW_BYTES,
      belongs: (owner) => this.#isOfStream(owner),
    });
  }

  async run(releasedTo: number): Promise<ScannedSegment> {
    const segment = this.#segment;
    let at = Math.min(releasedTo, segment.size);
    segment.readTo = at;
    segment.release(0, at);
    if (at === 0 && (await this.#takeSummary())) at = segment.size;
    while (at < segment.size) {
      const header = await this.#reader.headerAt(at);
      if (header === null) {
        at = await this.#pass(at);
      } else if (header.codec === SUMMARY) {
        segment.size = at;
      } else {
        const { replica, items, appendedAt, headerBytes, payloadBytes } = header;
        if (segment.unread.records === 0) segment.firstAt = appendedAt;
        segment.unread.add({ replica, records: 1, items });
        at += headerBytes + payloadBytes;
      }
    }
    const [owner, tornBytes, damagedBytes] = [this.#owner, this.#tornBytes, this.#damagedBytes];
    return { segment, owner, tornBytes, damagedBytes };
  }

  /** Takes the counts from the summary, if there is one: then records are not looked at. */
  async #takeSummary(): Promise<boolean> {
    const segment = this.#segment;
    const place = Buffer.alloc(SUMMARY_PLACE_BYTES);
    this.#read(place, Math.max(0, segment.size - place.length));
    const at = place.readUInt32LE();
    const header = at < segment.size ? await this.#reader.headerAt(at) : null;
    if (header === null || at + header.headerBytes + header.payloadBytes !== segment.size) return false;
    const summary = decodeSummary(header, await this.#reader.payloadOf(at, header));
    if (summary === null) return false;
    segment.firstAt = summary.firstAt;
    for (const count of summary.replicas) segment.unread.add(count);
    segment.size = at;
    return true;
  }

  /** What is no record: the end is cut off if it is an unfinished one, anything else is damage. @returns where to go on */
  async #pass(at: number): Promise<number> {
    const segment = this.#segment;
    const next = await this.#reader.findRecord(at + 1);
    if (next === segment.size && !this.#isUnreadable && (await this.#reader.isCutOff(at))) {
      await this.#file.truncate(at);
      this.#tornBytes = segment.size - at;
      segment.size = at;
      return at;
    }
    this.#damagedBytes += next - at;
    segment.isDamaged = true;
    segment.knownDamage.add(at);
    const where = `${this.#path}: bytes ${at} to ${next} are damaged`;
    this.#tools.log.error(`${where}; the records around them are kept, the file is kept aside in the end`);
    return next;
  }

  #isOfStream(bytes: Buffer): boolean {
    if (this.#ownerBytes !== null) return bytes.equals(this.#ownerBytes);
    const owner = decodeOwner(bytes);
    if (owner === null || streamKey(owner.lane) !== this.#segment.name.stream) return false;
    if (!this.#belongs(owner)) return false;
    this.#owner = owner;
    this.#ownerBytes = Buffer.from(bytes);
    return true;
  }

  #read(target: Uint8Array, position: number): number {
    try {
      return this.#file.readNow(target, position);
    } catch (error) {
      this.#isUnreadable = true;
      this.#tools.log.error(`${this.#path}: cannot be read from byte ${position} on: ${describe(error)}`);
      return 0;
    }
  }
}
