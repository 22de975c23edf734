/**
 * Reads records of one segment, by a window that moves along the file.
 *
 * A header counts as intact only if all of its record is inside the segment and it belongs to the stream.
 */
import { decodeHeader, headerBytesOf, MIN_HEADER_BYTES } from "./record.ts";
import type { RecordHeader } from "./record.ts";

/** Fills the target as far as the file reaches, and tells how far that was. */
export type ReadBytes = (target: Uint8Array, position: number) => Promise<number> | number;

export interface ReaderOptions {
  readonly read: ReadBytes;
  /** What all records begin with; see recordStart(). */
  readonly start: Buffer;
  /** Where the segment ends. */
  readonly end: number;
  /** Bytes that are read at a time, unless a record needs more. */
  readonly windowBytes: number;
  /** Whether records with this owner, see encodeOwner(), are of the stream. */
  readonly belongs: (owner: Buffer) => boolean;
}

const SEARCH_BYTES = 64 * 1024;

export class RecordReader {
  readonly #options: ReaderOptions;
  /** What the window is in; used again if it is large enough. */
  #buffer = Buffer.alloc(0);
  #window = this.#buffer;
  #windowAt = 0;

  constructor(options: ReaderOptions) {
    this.#options = options;
  }

  /** Where the segment ends. */
  get end(): number {
    return this.#options.end;
  }

  /** @returns null if no intact header is there; what it refers to is valid until the next call */
  async headerAt(at: number): Promise<RecordHeader | null> {
    const header = await this.#wholeHeaderAt(at);
    if (header === null || !this.#options.belongs(header.owner)) return null;
    return at + header.headerBytes + header.payloadBytes <= this.#options.end ? header : null;
  }

  /** The payload of the record at `at`, unchecked and possibly short; valid until the next call. */
  payloadOf(at: number, header: RecordHeader): Promise<Buffer> {
    return this.#bytes(at + header.headerBytes, header.payloadBytes);
  }

  /** Where the first intact header at `from` or behind it begins; the end of the segment if there is none. */
  async findRecord(from: number): Promise<number> {
    const { start, end } = this.#options;
    let at = from;
    while (end - at >= MIN_HEADER_BYTES) {
      const bytes = await this.#bytes(at, SEARCH_BYTES);
      if (bytes.length < MIN_HEADER_BYTES) return end; // the file is shorter than it was
      const found = bytes.indexOf(start);
      if (found === -1) {
        at += bytes.length - start.length + 1;
      } else {
        at += found;
        if ((await this.headerAt(at)) !== null) return at;
        at += 1;
      }
    }
    return end;
  }

  /** Whether a record begins at `at`, and the segment ends before all of it was written. */
  async isCutOff(at: number): Promise<boolean> {
    const { start, end } = this.#options;
    const bytes = await this.#bytes(at, MIN_HEADER_BYTES);
    const common = Math.min(bytes.length, start.length);
    if (start.compare(bytes, 0, common, 0, common) !== 0) return false;
    if (bytes.length < MIN_HEADER_BYTES) return true;
    const headerBytes = headerBytesOf(bytes, start);
    if (headerBytes === null) return false;
    if (at + headerBytes > end) return true;
    const header = await this.#wholeHeaderAt(at);
    return header !== null && at + header.headerBytes + header.payloadBytes > end;
  }

  async #wholeHeaderAt(at: number): Promise<RecordHeader | null> {
    const first = await this.#bytes(at, MIN_HEADER_BYTES);
    if (first.length < MIN_HEADER_BYTES) return null;
    const headerBytes = headerBytesOf(first, this.#options.start);
    if (headerBytes === null) return null;
    const header = await this.#bytes(at, headerBytes);
    return header.length < headerBytes ? null : decodeHeader(header);
  }

  /** Bytes [at, at + length), as far as the segment has them. */
  async #bytes(at: number, length: number): Promise<Buffer> {
    const wanted = Math.min(length, this.#options.end - at);
    const offset = at - this.#windowAt;
    if (offset < 0 || offset + wanted > this.#window.length) await this.#moveWindow(at, wanted);
    const from = at - this.#windowAt;
    return this.#window.subarray(from, from + wanted);
  }

  async #moveWindow(at: number, wanted: number): Promise<void> {
    const { windowBytes, end, read } = this.#options;
    const size = Math.min(Math.max(windowBytes, wanted), end - at);
    if (this.#buffer.length < size) this.#buffer = Buffer.allocUnsafeSlow(size);
    this.#window = this.#buffer.subarray(0, 0);
    const filled = await read(this.#buffer.subarray(0, size), at);
    this.#window = this.#buffer.subarray(0, filled);
    this.#windowAt = at;
  }
}
