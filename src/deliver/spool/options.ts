/** What the spool needs to know. Made by config/, where the defaults live. */
export interface SpoolOptions {
  /** The folder of the spool. One gateway at a time may use it. */
  readonly path: string;
  /** Bytes of segments on disk, of all upstreams together. */
  readonly maxBytes: number;
  readonly maxBytesPerUpstream: number;
  /** What becomes of an append for which there is no room: it is refused, or the upstream's oldest records make room. */
  readonly whenFull: "refuse" | "drop_oldest";
  /** What becomes of records of upstreams that the configuration does not name any more. */
  readonly orphans: "keep" | "drop";
}
