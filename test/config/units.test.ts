import { describe, expect, it } from "vitest";
import fc from "fast-check";
import { formatDuration, formatSize, parseDuration, parseSize } from "../../src/config/units.ts";

describe("a duration", () => {
  it.each([
    { written: "0", milliseconds: 0 },
    { written: "0s", milliseconds: 0 },
    { written: "20ms", milliseconds: 20 },
    { written: "15s", milliseconds: 15_000 },
    { written: "1h30m", milliseconds: 5_400_000 },
    { written: "1y2w3d4h5m6s7ms", milliseconds: ((((365 + 14 + 3) * 24 + 4) * 60 + 5) * 60 + 6) * 1000 + 7 },
    { written: "90m", milliseconds: 5_400_000 },
  ])("of $written has $milliseconds ms", ({ written, milliseconds }) => {
    expect(parseDuration(written)).toBe(milliseconds);
  });

  it.each(["", "15", "1.5s", "-1s", "1s1h", "1 s", "1S", "s", "1µs", "1h1h"].map((written) => ({ written })))(
    "is not '$written'",
    ({ written }) => {
      expect(parseDuration(written)).toBeNull();
    },
  );

  it("is read as it was written", () => {
    fc.assert(
      fc.property(fc.nat(), (milliseconds) => {
        expect(parseDuration(formatDuration(milliseconds))).toBe(milliseconds);
      }),
    );
  });
});

describe("a size", () => {
  it.each([
    { written: "0", bytes: 0 },
    { written: "512", bytes: 512 },
    { written: "64KiB", bytes: 65536 },
    { written: "32MiB", bytes: 33554432 },
    { written: "1GiB", bytes: 1073741824 },
  ])("of $written has $bytes bytes", ({ written, bytes }) => {
    expect(parseSize(written)).toBe(bytes);
  });

  it.each(["", "32MB", "32mib", "1.5MiB", "-1", "MiB", "1 MiB", "0x10"].map((written) => ({ written })))(
    "is not '$written'",
    ({ written }) => {
      expect(parseSize(written)).toBeNull();
    },
  );

  it.each([
    { bytes: 1, written: "1 byte" },
    { bytes: 1000, written: "1000 bytes" },
    { bytes: 65536, written: "64KiB" },
    { bytes: 3 * 1073741824, written: "3GiB" },
  ])("of $bytes bytes is written $written", ({ bytes, written }) => {
    expect(formatSize(bytes)).toBe(written);
  });
});
