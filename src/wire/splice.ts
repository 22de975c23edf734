/**
 * Changes of a message that leave the rest of its bytes as they came: ranges replaced by other bytes.
 */

/** Bytes [keep, resume) of a message are replaced by `inserted`; places count from the message's first byte. */
export interface Splice {
  readonly keep: number;
  readonly resume: number;
  readonly inserted: Uint8Array;
}

/** Changes nothing. */
export const NO_SPLICE: Splice = Object.freeze({ keep: 0, resume: 0, inserted: new Uint8Array(0) });

/** Length of a message of `bytes` bytes with splices made. */
export function splicedBytes(bytes: number, splices: readonly Splice[]): number {
  return splices.reduce((sum, { keep, resume, inserted }) => sum - (resume - keep) + inserted.length, bytes);
}

/** A message with splices made, which are in order and do not overlap. */
export function spliced(message: Uint8Array, ...splices: readonly Splice[]): Uint8Array {
  const changed = Buffer.allocUnsafe(splicedBytes(message.length, splices));
  let from = 0;
  let to = 0;
  for (const { keep, resume, inserted } of splices) {
    changed.set(message.subarray(from, keep), to);
    to += keep - from;
    changed.set(inserted, to);
    to += inserted.length;
    from = resume;
  }
  changed.set(message.subarray(from), to);
  return changed;
}
