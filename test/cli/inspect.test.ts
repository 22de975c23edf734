import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { compress } from "snappyjs";
import { afterAll, describe, expect, it } from "vitest";
import { inspect } from "../../src/cli/inspect.ts";
import { readVectors } from "../reference/vectors.ts";
import { encodeReference, type ReferenceRequest, uncompressBody } from "../reference/writeRequest.ts";

const FIXTURES = new URL("../fixtures/", import.meta.url).pathname;
const folder = mkdtempSync(join(tmpdir(), "inspect-"));
afterAll(() => {
  rmSync(folder, { recursive: true });
});

function show(file: string, { json = false, limit = 20 } = {}): string[] {
  const lines: string[] = [];
  expect(inspect(file, { json, limit }, (line) => lines.push(line))).toBe(0);
  return lines;
}

function showBytes(bytes: Uint8Array, options?: { json?: boolean; limit?: number }): string[] {
  const file = join(folder, "captured.bin");
  writeFileSync(file, bytes);
  return show(file, options);
}

function complaintAbout(bytes: Uint8Array): string {
  try {
    showBytes(bytes);
  } catch (error) {
    expect(error).toBeInstanceOf(SyntaxError);
    return (error as SyntaxError).message.replace(`${folder}/`, "");
  }
  throw new Error("nothing was complained about");
}

const SMALL = readFileSync(`${FIXTURES}rw1_requests/self-small.bin`);

function requestOf(series: Partial<ReferenceRequest["series"][number]>): Uint8Array {
  const request = {
    series: [
      { labels: [["__name__", "m"]] as [string, string][], samples: [], exemplars: [], histograms: [] },
    ],
    metadata: [],
  };
  return encodeReference({ ...request, series: request.series.map((one) => ({ ...one, ...series })) });
}

describe("inspect --json on recorded requests", () => {
  const vectors = [...readVectors("rw1_requests"), ...readVectors("vm_requests")];
  it.each(vectors.filter(({ encoding }) => encoding === "snappy"))(
    "prints $name as one document, as its recorder decoded it",
    ({ name, decoded }) => {
      const lines = show(`${FIXTURES}${name}.bin`, { json: true });
      expect(lines).toHaveLength(1);
      expect(JSON.parse(lines[0] ?? "")).toEqual(decoded);
    },
  );

  it.each(["small", "nhcb", "exemplars-native", "stale-histograms"])(
    "recognises remote write 2.0 in %s and resolves its references",
    (name) => {
      const vector = JSON.parse(readFileSync(`${FIXTURES}rw2_requests/${name}.json`, "utf8")) as {
        decoded: unknown;
      };
      const lines = show(`${FIXTURES}rw2_requests/${name}.bin`, { json: true });
      expect(JSON.parse(lines[0] ?? "")).toEqual(vector.decoded);
    },
  );

  it("prints integers beyond 2^53 as digits and unknown fields as hex", () => {
    const plain = requestOf({
      samples: [{ valueBits: "8000000000000000", timestamp: "9223372036854775807", unknown: ["1807"] }],
    });
    const { timeseries } = JSON.parse(showBytes(plain, { json: true })[0] ?? "") as { timeseries: unknown[] };
    expect(timeseries).toMatchObject([
      { samples: [{ value: "-0", timestamp: "9223372036854775807", unknown_fields: ["1807"] }] },
    ]);
  });
});

describe("inspect on a request of every kind of item", () => {
  const lines = show(`${FIXTURES}rw1_requests/exemplars-native.bin`, { limit: 0 });

  it("begins with what the file is and what it holds", () => {
    expect(lines.slice(0, 2)).toEqual([
      `${FIXTURES}rw1_requests/exemplars-native.bin: remote write 1.0, snappy block of 1,884 bytes, 8,544 bytes plain`,
      "60 series with 49 samples, 3 histograms, 8 exemplars; 0 metadata entries",
    ]);
  });

  it("shows a sample with its time as a date and in milliseconds", () => {
    const at = lines.indexOf(
      'pb_events_total{cluster="eu-1",instance="127.0.0.1:18081",job="pb",k="v",replica="a"}',
    );
    expect(lines[at + 1]).toBe("  18 @ 2026-11-30T02:37:39.632Z (1796006259632 ms)");
  });

  it("shows a native histogram with its buckets", () => {
    const at = lines.findIndex((line) => line.startsWith("native_lat_seconds{"));
    expect(lines.slice(at + 1, at + 6)).toEqual([
      "  histogram count=93 sum=13.5 schema=3 zero_count=9 zero_threshold=1e-128 reset_hint=unknown @ 2026-11-30T02:37:39.632Z (1796006259632 ms)",
      "    negative spans: -3×2 +4×1",
      "    negative deltas: 18 0 -9",
      "    positive spans: +0×3 +5×1",
      "    positive deltas: 9 1 -1 2",
    ]);
  });

  it("shows exemplars with their labels", () => {
    expect(lines).toContain('  exemplar {trace_id="abc9"} 0.7 @ 2026-11-30T02:37:39.704Z (1796006259704 ms)');
  });
});

describe("inspect on values that need a name", () => {
  const rows = [
    { name: "the stale marker", bits: "7ff0000000000002", text: "StaleNaN" },
    { name: "the ordinary NaN", bits: "7ff8000000000001", text: "NaN" },
    { name: "another NaN", bits: "7ff8000000000002", text: "NaN (bits 7ff8000000000002)" },
    { name: "infinity", bits: "7ff0000000000000", text: "+Inf" },
    { name: "minus infinity", bits: "fff0000000000000", text: "-Inf" },
    { name: "minus zero", bits: "8000000000000000", text: "-0" },
  ];
  it.each(rows)("names $name", ({ bits, text }) => {
    const lines = showBytes(requestOf({ samples: [{ valueBits: bits, timestamp: "0" }] }));
    expect(lines).toContain(`  ${text} @ 1970-01-01T00:00:00.000Z (0 ms)`);
  });

  it("leaves a timestamp that is no date a number", () => {
    const lines = showBytes(
      requestOf({ samples: [{ valueBits: "3ff0000000000000", timestamp: "-9223372036854775808" }] }),
    );
    expect(lines).toContain("  1 @ -9223372036854775808 ms");
  });
});

describe("inspect on a large request", () => {
  it("shows the first series and says how many more there are", () => {
    const lines = show(`${FIXTURES}rw1_requests/self-300.bin`, { limit: 3 });
    expect(lines.filter((line) => line.includes("{"))).toHaveLength(3);
    expect(lines.at(-1)).toBe("… 297 more series, --limit 0 shows all");
  });

  it("shows metadata with type and help", () => {
    const lines = show(`${FIXTURES}rw1_requests/metadata-only-units.bin`, { limit: 0 });
    expect(lines).toContain('rpc_seconds histogram unit="seconds" "Latency.\\nSecond line."');
  });

  it("refuses a limit that is no number", () => {
    expect(() => show(`${FIXTURES}rw1_requests/self-300.bin`, { limit: Number.NaN })).toThrow(
      "--limit: want",
    );
  });
});

describe("inspect on hostile text", () => {
  it("prints no control character, wherever it stands", () => {
    const hostile = Buffer.from("\u001b[2J\u0007\u009b\u202e\n\u007f", "utf8").toString("latin1");
    const plain = encodeReference({
      series: [
        {
          labels: [
            ["__name__", hostile],
            [hostile, hostile],
          ],
          samples: [],
          exemplars: [{ labels: [[hostile, hostile]], valueBits: "3ff0000000000000", timestamp: "1" }],
          histograms: [],
        },
      ],
      metadata: [{ type: 1, family: hostile, help: hostile, unit: hostile, accountId: 0, projectId: 0 }],
    });
    const text = showBytes(plain).join("");
    expect(text).toContain("\\u001b[2J");
    expect(text).not.toMatch(/[\p{Cc}\u202e]/u);
  });

  it("shows the bytes of labels that are not UTF-8", () => {
    const lines = showBytes(requestOf({ labels: [["job", "\xff\xfe"]] }));
    expect(lines).toContain("  not UTF-8: name 6a6f62, value fffe");
  });

  it("shows unknown fields, cut to their first 32 bytes", () => {
    const long = `4a28${"ab".repeat(40)}`;
    const lines = showBytes(requestOf({ unknown: [long] }));
    expect(lines).toContain(`  field unknown to the schema, 42 bytes: ${long.slice(0, 64)}…`);
  });
});

describe("inspect on a request that is not compressed", () => {
  it("recognises it and shows it", () => {
    const plain = uncompressBody(SMALL);
    const lines = showBytes(plain);
    expect(lines[0]).toBe(`${folder}/captured.bin: remote write 1.0, not compressed, 1,018 bytes`);
    expect(lines.slice(1)).toEqual(show(`${FIXTURES}rw1_requests/self-small.bin`).slice(1));
  });
});

describe("inspect on a request that the gateway would refuse", () => {
  it("shows what can be decoded, and the reason", () => {
    // A sample (field 2 of a series) as a varint: protobufjs passes over it.
    const lines = showBytes(compress(new Uint8Array(Buffer.from("0a021005", "hex"))));
    expect(lines[1]).toMatch(/^1 series with 0 samples/);
    expect(lines[2]).toMatch(/^the gateway refuses this request: .*byte 2/);
  });
});

describe("inspect on a file that is no request", () => {
  const plain = uncompressBody(SMALL);
  const rows = [
    {
      name: "an empty file",
      bytes: new Uint8Array(0),
      message: "captured.bin: empty, want the body of a write request",
    },
    {
      name: "zstd",
      bytes: readFileSync(`${FIXTURES}vm_requests/small.bin`),
      message: "captured.bin: zstd, not decoded; a vmagent sends snappy with -remoteWrite.forcePromProto",
    },
    { name: "gzip", bytes: Buffer.from("1f8b0800", "hex"), message: "captured.bin: gzip, not decoded" },
    {
      name: "a truncated snappy block",
      bytes: SMALL.subarray(0, 200),
      message: /no snappy block \(snappy element at byte \d+ runs past the end at byte 200\)/,
    },
    {
      name: "a snappy block around a truncated message",
      bytes: compress(plain.slice(0, 100)),
      message: /^captured.bin: a snappy block of 100 plain bytes, but .* byte \d+/,
    },
    {
      name: "a truncated plain message",
      bytes: plain.subarray(0, 100),
      message:
        /^captured.bin: neither a snappy block \(.* byte \d+.*\) nor a plain message \(.* byte \d+.*\)$/,
    },
    { name: "text", bytes: Buffer.from("remote_write:\n"), message: /byte \d+/ },
  ];
  it.each(rows)("says so of $name", ({ bytes, message }) => {
    const complaint = complaintAbout(bytes);
    if (typeof message === "string") expect(complaint).toBe(message);
    else expect(complaint).toMatch(message);
  });

  it("names a file that is not there", () => {
    expect(() => show(join(folder, "nowhere.bin"))).toThrow("ENOENT");
  });
});
