/** The recorded requests as plain bytes, whole or cut short between two of their top-level fields. */
import protobuf from "protobufjs";
import { readVectors } from "../reference/vectors.ts";
import { uncompressBody } from "../reference/writeRequest.ts";

export interface PlainRequest {
  readonly name: string;
  readonly plain: Uint8Array;
}

/** Bodies in zstd are left out: the gateway refuses them. */
export function plainRequests(): PlainRequest[] {
  return [...readVectors("rw1_requests"), ...readVectors("vm_requests")]
    .filter(({ encoding }) => encoding === "snappy")
    .map(({ name, body }) => ({ name, plain: uncompressBody(body) }));
}

/** Where a request's top-level fields end, as protobufjs reads them. */
export function topLevelEnds(plain: Uint8Array): number[] {
  const reader = protobuf.Reader.create(Buffer.from(plain));
  const ends: number[] = [];
  while (reader.pos < reader.len) {
    reader.skipType(reader.tag() & 7);
    ends.push(reader.pos);
  }
  return ends;
}

/** As many whole top-level fields from the front as fit into `maxBytes`. */
export function cutToFields(plain: Uint8Array, maxBytes: number): Uint8Array {
  const end = topLevelEnds(plain).findLast((fieldEnd) => fieldEnd <= maxBytes) ?? 0;
  return plain.subarray(0, end);
}
