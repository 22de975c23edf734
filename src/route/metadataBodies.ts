/** The metadata entries of one request, gathered into requests of their own. */
import { joinParcels } from "../wire/parcel.ts";
import type { ParcelLimits } from "./options.ts";

const FIRST_CAPACITY = 16 * 1024;
/** More of one request is dropped: no program has as many metric families, and a hostile body can hold millions. */
const MAX_ENTRIES = 300_000;

export interface MetadataBody {
  /** A snappy block that holds a request. */
  readonly body: Uint8Array;
  readonly entries: number;
}

export class MetadataBodies {
  readonly #limits: ParcelLimits;
  readonly #packed: MetadataBody[] = [];
  /** Full, and not compressed yet. */
  readonly #full: { readonly plain: Uint8Array; readonly entries: number }[] = [];
  #open = new Uint8Array(0);
  #bytes = 0;
  #entries = 0;
  #taken = 0;
  #dropped = 0;

  /** @param limits of one request; an entry counts as one item */
  constructor(limits: ParcelLimits) {
    this.#limits = limits;
  }

  /** Entries that were more than one request may have. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Copies an entry: a whole field of a request, tag included. */
  add(bytes: Uint8Array, start: number, end: number): void {
    if (this.#taken === MAX_ENTRIES) {
      this.#dropped += 1;
      return;
    }
    this.#taken += 1;
    const { maxItems, maxPlainBytes } = this.#limits;
    if (this.#entries === maxItems || this.#bytes + end - start > maxPlainBytes) this.#close();
    this.#reserve(end - start);
    this.#open.set(bytes.subarray(start, end), this.#bytes);
    this.#bytes += end - start;
    this.#entries += 1;
  }

  /** Compresses what is full. */
  pack(compress: (plain: Uint8Array) => Uint8Array): void {
    for (const { plain, entries } of this.#full.splice(0)) {
      this.#packed.push({
        body: joinParcels([{ elements: compress(plain), plainBytes: plain.length }]),
        entries,
      });
    }
  }

  /** Compresses the rest, and answers all. */
  finish(compress: (plain: Uint8Array) => Uint8Array): readonly MetadataBody[] {
    this.#close();
    this.pack(compress);
    return this.#packed;
  }

  #close(): void {
    if (this.#entries === 0) return;
    this.#full.push({ plain: this.#open.subarray(0, this.#bytes), entries: this.#entries });
    this.#open = new Uint8Array(0);
    this.#bytes = 0;
    this.#entries = 0;
  }

  #reserve(more: number): void {
    const needed = this.#bytes + more;
    if (needed <= this.#open.length) return;
    const grown = new Uint8Array(Math.max(needed, this.#open.length * 2, FIRST_CAPACITY));
    grown.set(this.#open);
    this.#open = grown;
  }
}
