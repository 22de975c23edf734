/** What an upstream holds in memory. */
import type { LaneParcel } from "./delivery.ts";

/** The part of the gateway's memory that one upstream may hold: all that is taken is released. */
export interface UpstreamMemory {
  /** Takes so many bytes; false, and nothing, when the upstream holds too much. */
  tryTake(bytes: number): boolean;
  /** Takes bytes of what was accepted before: what is read from the spool, and requests of several parcels. */
  take(bytes: number): void;
  release(bytes: number): void;
  /** Releases all that is left. */
  close(): void;
}

/** Node's Buffer.poolSize: small buffers are parts of one of this size, which any of them keeps as a whole. */
const POOL_BYTES = 8 * 1024;

/** What a buffer keeps in memory; it is not asked for what it is a part of, which takes longer than all else here. */
export function keptBytes({ length }: Uint8Array): number {
  return Math.max(length, POOL_BYTES);
}

/** What parcels keep in memory. What there is of objects is small beside it. */
export function bytesOf(parcels: readonly Pick<LaneParcel, "parcel">[]): number {
  let bytes = 0;
  for (const { parcel } of parcels) bytes += keptBytes(parcel.elements);
  return bytes;
}
