/** The series of a plain request as the bytes of their messages, without tag and length, in their order. */
import protobuf from "protobufjs";

// message WriteRequest { repeated TimeSeries timeseries = 1; ... }
const TIMESERIES = (1 << 3) | 2;

export function seriesMessages(plain: Uint8Array): Uint8Array[] {
  const reader = protobuf.Reader.create(plain);
  const messages: Uint8Array[] = [];
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    if (tag === TIMESERIES) messages.push(reader.bytes());
    else reader.skipType(tag & 7);
  }
  return messages;
}
