/**
 * A change of a message that leaves the rest of its bytes as they came: one range replaced by other bytes.
 */

/** Bytes [keep, resume) of a message are replaced by `inserted`; places count from the message's first byte. */
export interface Splice {
  readonly keep: number;
  readonly resume: number;
  readonly inserted: Uint8Array;
}

/** Changes nothing. */
export const NO_SPLICE: Splice = Object.freeze({ keep: 0, resume: 0, inserted: new Uint8Array(0) });

/** A message with a splice made. */
export function spliced(message: Uint8Array, { keep, resume, inserted }: Splice): Uint8Array {
  const changed = Buffer.allocUnsafe(message.length - (resume - keep) + inserted.length);
  changed.set(message.subarray(0, keep));
  changed.set(inserted, keep);
  changed.set(message.subarray(resume), keep + inserted.length);
  return changed;
}
