/** `spool`: where parcels wait on disk, and how much of them. */
import type { SpoolOptions } from "../deliver/spool/options.ts";
import { oneOf, text } from "./scalars.ts";
import type { Section } from "./section.ts";
import { formatSize, GIB, MIB, size } from "./units.ts";

/** Two batches of the largest size: with less, a lane could not go behind at all. */
const MIN_BYTES = 16 * MIB;

export function readSpool(spool: Section): SpoolOptions {
  const path = spool.optional("path", text, "./data/spool");
  const limit = size({ min: MIN_BYTES });
  const maxBytes = spool.optional("max_bytes", limit, GIB);
  const maxBytesPerUpstream = spool.optional("max_bytes_per_upstream", limit, maxBytes);
  if (maxBytesPerUpstream > maxBytes) {
    const want = `want at most spool.max_bytes, ${formatSize(maxBytes)}, which is for all upstreams`;
    const got = formatSize(maxBytesPerUpstream);
    spool.problems.error(spool.placeOf("max_bytes_per_upstream"), `${want}; got ${got}`);
  }
  return {
    path,
    maxBytes,
    maxBytesPerUpstream,
    whenFull: spool.optional("when_full", oneOf("refuse", "drop_oldest"), "refuse"),
    orphans: spool.optional("orphans", oneOf("keep", "drop"), "keep"),
  };
}
