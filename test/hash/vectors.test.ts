import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { buildBuckets } from "../../src/hash/buckets.ts";
import { Circle } from "../../src/hash/circle.ts";
import { fnv1a32, fnv1a32Byte, FNV_OFFSET_BASIS } from "../../src/hash/fnv.ts";
import { jump, jump64 } from "../../src/hash/jump.ts";
import { labelSpans } from "../../src/hash/labelOrder.ts";
import { compileKey } from "../../src/hash/labelSetKey.ts";
import { maglevTable } from "../../src/hash/maglev.ts";
import { pointPerSlot } from "../../src/hash/multiProbe.ts";
import { siphash24 } from "../../src/hash/siphash.ts";
import { xxhash64 } from "../../src/hash/xxhash64.ts";

function readFixture(name: string): unknown {
  return JSON.parse(readFileSync(new URL(`../fixtures/${name}`, import.meta.url), "utf8"));
}

function readVectors(name: string): unknown {
  return (readFixture(name) as { vectors: unknown }).vectors;
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
        expect(buildBuckets("hashmod", Number(buckets))(hash), `${hash} mod ${buckets}`).toBe(expected);
      }
    }
  });
});

interface HashVectors {
  readonly ring: readonly {
    readonly source: string;
    readonly hosts: readonly string[];
    readonly positions: Readonly<Record<string, readonly string[]>>;
    readonly lookups: readonly { readonly key: string; readonly host_index: number }[];
  }[];
  readonly maglev: readonly {
    readonly M: number;
    readonly hosts: readonly string[];
    readonly table: readonly number[];
  }[];
  readonly multi_probe: {
    readonly probes: number;
    readonly expected: readonly string[];
  };
  readonly xxh64: readonly { readonly hex: string; readonly seed: number; readonly expected: string }[];
}

const hashes = readFixture("hashes.json") as HashVectors;

describe("fixed vectors of XXH64", () => {
  it("gives the published hash for every row", () => {
    expect(hashes.xxh64.length).toBeGreaterThan(10);
    for (const { hex, seed, expected } of hashes.xxh64) {
      expect(xxhash64(Buffer.from(hex, "hex"), BigInt(seed)), `${hex}, seed ${seed}`).toBe(BigInt(expected));
    }
  });

  it("gives the positions of Envoy's ring", () => {
    const [ring] = hashes.ring;
    for (const [host, positions] of Object.entries(ring?.positions ?? {})) {
      const hashed = positions.map((_, index) => String(xxhash64(Buffer.from(`${host}_${index}`), 0n)));
      expect(hashed.sort()).toEqual([...positions].sort());
    }
  });
});

describe("fixed lookups of Envoy's ring", () => {
  it.each(hashes.ring)("gives every key the published host: $source", ({ hosts, positions, lookups }) => {
    // Envoy's circle has 64 bits, ours 32: the order of points and keys is kept, two numbers to a point.
    const points = hosts.flatMap((host, owner) =>
      (positions[host] ?? []).map((position) => ({ position: BigInt(position), owner })),
    );
    const rank = (position: bigint): number => {
      const before = points.filter((point) => point.position < position).length;
      return points.some((point) => point.position === position) ? 2 * before + 1 : 2 * before;
    };
    const circle = new Circle(
      Uint32Array.from(points, ({ position }) => rank(position)),
      Uint32Array.from(points, ({ owner }) => owner),
    );
    expect(lookups.length).toBeGreaterThan(4);
    for (const { key, host_index: expected } of lookups) {
      expect(circle.ownerAfter(rank(BigInt(key))), key).toBe(expected);
    }
  });
});

describe("fixed tables of Envoy's Maglev", () => {
  it.each(hashes.maglev)("fills a table of $M entries as published", ({ M, hosts, table }) => {
    const slots = hosts.map((name) => ({ name }));
    expect([...maglevTable(slots, M)]).toEqual(table);
  });
});

describe("fixed lookups of go-mpchash", () => {
  // Its circle has 64 bits; of positions and points, the upper 32 tell all of these apart.
  it("gives every key of go-mpchash the published bucket", () => {
    const { probes, expected } = hashes.multi_probe;
    const slots = Array.from({ length: 6000 }, (_, index) => ({ name: `shard-${index + 1}` }));
    const circle = pointPerSlot(slots);
    expect(expected.length).toBe(200);
    expected.forEach((bucket, index) => {
      const key = Buffer.from(`shard-${index + 1}`);
      const start = siphash24(key, 1n);
      const step = siphash24(key, 2n);
      const positions = Int32Array.from({ length: probes }, (_, probe) =>
        Number(BigInt.asIntN(32, (start + BigInt(probe) * step) >> 32n)),
      );
      expect(slots[circle.nearestOwner(positions)]?.name, `shard-${index + 1}`).toBe(bucket);
    });
  });
});
