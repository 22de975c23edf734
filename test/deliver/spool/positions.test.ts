import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatPositions, parsePositions } from "../../../src/deliver/spool/positions.ts";

const positions = fc.uniqueArray(
  fc.record({ fileName: fc.stringMatching(/^[a-z0-9.-]{1,20}$/), releasedTo: fc.nat() }),
  { selector: ({ fileName }) => fileName },
);

describe("positions", () => {
  it("are what was written", () => {
    fc.assert(
      fc.property(positions, (written) => {
        const read = parsePositions(formatPositions(written));
        expect([...read].map(([fileName, releasedTo]) => ({ fileName, releasedTo }))).toEqual(written);
      }),
    );
  });

  it("are none when the file is not whole, or damaged", () => {
    fc.assert(
      fc.property(positions, fc.nat(), fc.nat({ max: 6 }), (written, at, bit) => {
        const file = formatPositions(written);
        const damaged = Buffer.from(file);
        damaged.writeUInt8(damaged.readUInt8(at % file.length) ^ (1 << bit), at % file.length);
        expect(parsePositions(file.subarray(0, at % file.length)).size).toBe(0);
        expect([...parsePositions(damaged)].filter(([name, to]) => !isWritten(written, name, to))).toEqual(
          [],
        );
      }),
    );
  });
});

function isWritten(
  written: readonly { fileName: string; releasedTo: number }[],
  name: string,
  to: number,
): boolean {
  return written.some(({ fileName, releasedTo }) => fileName === name && releasedTo === to);
}
