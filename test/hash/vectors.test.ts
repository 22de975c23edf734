import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { fnv1a32, fnv1a32Byte, FNV_OFFSET_BASIS } from "../../src/hash/fnv.ts";
import { jump, jump64 } from "../../src/hash/jump.ts";
import { labelSpans } from "../../src/hash/labelOrder.ts";
import { compileKey } from "../../src/hash/labelSetKey.ts";
import { buildPlacement } from "../../src/hash/placement.ts";

function readVectors(name: string): unknown {
  const file = new URL(`../fixtures/${name}`, import.meta.url);
  return (JSON.parse(readFileSync(file, "utf8")) as { vectors: unknown }).vectors;
}

function spansOf(labels: readonly (readonly [string, string])[]): ReturnType<typeof labelSpans> {
  return labelSpans(labels.flat().map((text) => Buffer.from(text)));
}

describe("fixed vectors of FNV-1a-32", () => {
  const vectors = readVectors("fnv32a.json") as readonly { hex: string; expected: number }[];

  it("gives the published hash for every row, in one go and byte by byte", () => {
    expect(vectors.length).toBeGreaterThan(200);
    for (const { hex, expected } of vectors) {
      const bytes = Buffer.from(hex, "hex");
      expect(fnv1a32(bytes, 0, bytes.length), hex).toBe(expected);
      expect(
        bytes.reduce((hash, byte) => fnv1a32Byte(byte, hash), FNV_OFFSET_BASIS),
        hex,
      ).toBe(expected);
    }
  });
});

describe("fixed vectors of jump consistent hash", () => {
  const vectors = readVectors("jump.json") as readonly { key: string; buckets: number; expected: number }[];

  it("gives the published bucket for every 64-bit key", () => {
    expect(vectors.length).toBeGreaterThan(300);
    for (const { key, buckets, expected } of vectors) {
      const wide = BigInt(key);
      const bucket = jump64(Number(wide >> 32n), Number(wide & 0xffffffffn), buckets);
      expect(bucket, `${key} into ${buckets}`).toBe(expected);
    }
  });
});

interface SeriesKeyRow {
  readonly labels: readonly (readonly [string, string])[];
  readonly hash: number;
  readonly task: Readonly<Record<string, number>>;
  readonly upstream: Readonly<Record<string, number>>;
  readonly mod: Readonly<Record<string, number>>;
}

describe("fixed vectors of flat series keys", () => {
  const vectors = readVectors("series_key.json") as readonly SeriesKeyRow[];
  const flat = compileKey({ kind: "all" }, "flat", null);

  it("gives the key of the old Go gateway for every label set", () => {
    expect(vectors.length).toBeGreaterThan(50);
    for (const { labels, hash } of vectors)
      expect(flat(spansOf(labels), null), JSON.stringify(labels)).toBe(hash);
  });

  it("gives task and upstream of the key by jump hash, and by modulus", () => {
    for (const { hash, task, upstream, mod } of vectors) {
      for (const [buckets, expected] of [...Object.entries(task), ...Object.entries(upstream)]) {
        expect(jump(hash, Number(buckets)), `${hash} into ${buckets}`).toBe(expected);
      }
      for (const [buckets, expected] of Object.entries(mod)) {
        expect(buildPlacement("hashmod", Number(buckets)).place(hash), `${hash} mod ${buckets}`).toBe(
          expected,
        );
      }
    }
  });
});
