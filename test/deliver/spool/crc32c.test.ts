import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { crc32c } from "../../../src/deliver/spool/crc32c.ts";

/** A bit a step, as the polynomial is written. */
function slowCrc32c(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc & 1) === 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1;
  }
  return (crc ^ 0xffffffff) >>> 0;
}

const READ_COMMAND = Buffer.from(
  "01c00000000000000000000000000000140000000000040000000014000000182800000000000000" + "0200000000000000",
  "hex",
);

describe("crc32c", () => {
  it.each([
    { name: "nothing", bytes: Buffer.alloc(0), sum: 0 },
    { name: "the digits 1 to 9", bytes: Buffer.from("123456789"), sum: 0xe3069283 },
    // RFC 3720, B.4, whose bytes of the sum stand the other way round
    { name: "32 bytes of 0", bytes: Buffer.alloc(32), sum: 0x8a9136aa },
    { name: "32 bytes of 255", bytes: Buffer.alloc(32, 255), sum: 0x62a8ab43 },
    { name: "32 bytes counting up", bytes: Buffer.from([...Array(32).keys()]), sum: 0x46dd794e },
    { name: "32 bytes counting down", bytes: Buffer.from([...Array(32).keys()].reverse()), sum: 0x113fdb5c },
    { name: "an iSCSI read command", bytes: READ_COMMAND, sum: 0xd9963a56 },
  ])("is known of $name", ({ bytes, sum }) => {
    expect(crc32c(bytes)).toBe(sum);
  });

  it("is what the slow way gives, for any bytes", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
        expect(crc32c(bytes)).toBe(slowCrc32c(bytes));
      }),
    );
  });
});
