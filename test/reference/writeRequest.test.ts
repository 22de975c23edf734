import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { DecodeError } from "../../src/cli/referenceDecoder.ts";
import { expectedReference, readVectors } from "./vectors.ts";
import {
  decodeBody,
  decodeReference,
  encodeReference,
  type ReferenceHistogram,
  type ReferenceRequest,
  uncompressBody,
} from "./writeRequest.ts";

const VECTORS = [...readVectors("rw1_requests"), ...readVectors("vm_requests")];
const SNAPPY_VECTORS = VECTORS.filter(({ encoding }) => encoding === "snappy");

function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

describe("reference decoder on recorded requests", () => {
  it("has all the vectors to work on", () => {
    expect([VECTORS.length, SNAPPY_VECTORS.length]).toEqual([24, 19]);
  });

  it.each(SNAPPY_VECTORS)("decompresses $name to its plain bytes", ({ body, plainBytes, plainSha256 }) => {
    const plain = uncompressBody(body);
    expect([plain.length, sha256(plain)]).toEqual([plainBytes, plainSha256]);
  });

  it.each(SNAPPY_VECTORS)("decodes $name to what its recorder decoded", ({ body, decoded }) => {
    expect(decodeBody(body)).toEqual(expectedReference(decoded));
  });

  // Bodies in zstd take part here: their content is known, and so is the hash of their plain bytes.
  it.each(VECTORS)("encodes the content of $name to its plain bytes", ({ decoded, plainSha256 }) => {
    expect(sha256(encodeReference(expectedReference(decoded)))).toBe(plainSha256);
  });
});

const HISTOGRAM: ReferenceHistogram = {
  count: ["count_int", "18446744073709551615"],
  sumBits: "7ff0000000000002",
  schema: -53,
  zeroThresholdBits: "0000000000000001",
  zeroCount: ["zero_count_int", "0"],
  negativeSpans: [{ offset: -3, length: 2 }],
  negativeDeltas: ["-9223372036854775808", "9223372036854775807", "9007199254740993"],
  negativeCountBits: [],
  positiveSpans: [],
  positiveDeltas: [],
  positiveCountBits: ["7ff0000000000002", "8000000000000000"],
  resetHint: 3,
  timestamp: "-1",
  customValueBits: ["7ff0000000000000"],
};

function requestOf(series: Partial<ReferenceRequest["series"][number]>): ReferenceRequest {
  return {
    series: [{ labels: [], samples: [], exemplars: [], histograms: [], ...series }],
    metadata: [],
  };
}

describe("reference decoder on values that JavaScript's numbers and strings would change", () => {
  const rows = [
    {
      name: "a stale marker",
      request: requestOf({ samples: [{ valueBits: "7ff0000000000002", timestamp: "1" }] }),
    },
    {
      name: "minus zero",
      request: requestOf({ samples: [{ valueBits: "8000000000000000", timestamp: "0" }] }),
    },
    {
      name: "the ends of the timestamps",
      request: requestOf({
        samples: [
          { valueBits: "0000000000000000", timestamp: "-9223372036854775808" },
          { valueBits: "0000000000000000", timestamp: "9223372036854775807" },
        ],
      }),
    },
    { name: "counts beyond 2^53", request: requestOf({ histograms: [HISTOGRAM] }) },
    { name: "invalid UTF-8 in a label", request: requestOf({ labels: [["a\xff", "\xc3"]] }) },
    {
      name: "a tenant of VictoriaMetrics",
      request: {
        series: [],
        metadata: [{ type: 9, family: "f", help: "", unit: "", accountId: 4294967295, projectId: 7 }],
      },
    },
    {
      name: "unknown fields at every level",
      request: {
        series: [
          {
            labels: [["a", "b", ["1801"]]],
            samples: [{ valueBits: "3ff0000000000000", timestamp: "5", unknown: ["1807"] }],
            exemplars: [
              { labels: [["t", "1"]], valueBits: "3ff0000000000000", timestamp: "5", unknown: ["22026869"] },
            ],
            histograms: [
              {
                ...HISTOGRAM,
                negativeSpans: [{ offset: 1, length: 1, unknown: ["1d01020304"] }],
                unknown: ["880107"],
              },
            ],
            unknown: ["4a026869", "910101020304050607ff"],
          },
        ],
        metadata: [
          { type: 1, family: "f", help: "", unit: "", accountId: 0, projectId: 0, unknown: ["3001"] },
        ],
        unknown: ["2a00"],
      },
    },
  ] satisfies { name: string; request: ReferenceRequest }[];

  it.each(rows)("gives $name back as it was encoded", ({ request }) => {
    expect(decodeReference(encodeReference(request))).toEqual(request);
  });

  it("tells a count of 0 that came from one that did not", () => {
    const zero = Buffer.from("0a04" + "2202" + "0800", "hex");
    const none = Buffer.from("0a02" + "2200", "hex");
    const counts = [zero, none].map((plain) => decodeReference(plain).series[0]?.histograms[0]?.count);
    expect(counts).toEqual([["count_int", "0"], null]);
  });

  it("lets the last of a repeated scalar win, a zero included", () => {
    const sample = "12" + "04" + "1005" + "1000";
    expect(decodeReference(Buffer.from(`0a06${sample}`, "hex")).series[0]?.samples[0]?.timestamp).toBe("0");
  });

  it("reads packed and unpacked lists alike", () => {
    const unpacked = Buffer.from("0a06" + "2204" + "48024803", "hex");
    const packed = Buffer.from("0a06" + "2204" + "4a020203", "hex");
    const deltas = [unpacked, packed].map(
      (plain) => decodeReference(plain).series[0]?.histograms[0]?.negativeDeltas,
    );
    expect(deltas).toEqual([
      ["1", "-2"],
      ["1", "-2"],
    ]);
  });
});

describe("reference decoder on broken bytes", () => {
  const rows = [
    { name: "a length past the end", hex: "0a05" + "0a00", offset: 2 },
    { name: "a field past the end of its series", hex: "0a02" + "0a04" + "0a00" + "0a00", offset: 4 },
    { name: "a tag cut off", hex: "0a00" + "80", offset: 3 },
    { name: "an 11-byte varint", hex: "0a0e" + "120c" + "10" + "ffffffffffffffffffff01", offset: 15 },
  ];
  it.each(rows)("refuses $name and says where it stood", ({ hex, offset }) => {
    let error: unknown;
    try {
      decodeReference(Buffer.from(hex, "hex"));
    } catch (caught) {
      error = caught;
    }
    expect(error).toBeInstanceOf(DecodeError);
    expect((error as DecodeError).offset).toBe(offset);
  });
});
