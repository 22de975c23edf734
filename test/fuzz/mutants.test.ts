import { compress, uncompress } from "snappyjs";
import { describe, expect, it } from "vitest";
import { decodeWriteRequest } from "../../src/cli/referenceDecoder.ts";
import { loadSchema } from "../../src/cli/protoSchema.ts";
import { WireError } from "../../src/wire/errors.ts";
import { expectedReference, readVectors } from "../reference/vectors.ts";
import { decodeReference, encodeReference, type ReferenceRequest } from "../reference/writeRequest.ts";
import { exampleRoute, NO_RULES } from "../route/exampleRoute.ts";
import { labelled } from "../route/labelled.ts";
import { cutToFields } from "../wire/plainRequests.ts";
import { damageBytes, damageFields } from "./mutate.ts";
import { Random } from "./random.ts";
import { strictUncompress } from "./strictSnappy.ts";
import { Splitter } from "../oracle/split.ts";
import { routingDifference } from "../oracle/routingDifference.ts";
import { GLOBAL_RULES, RULED_ROUTES, SEVERAL_TENANTS } from "../oracle/ruledRoutes.ts";
import { type Routed, routeBlock, routerOf } from "../route/routed.ts";

const MUTANTS = 200_000;
const SEED = 20260727;
/** Each recorded request takes part twice: in a short one damage meets more of what matters, and costs less time. */
const CUTS = [8 * 1024, 1024];
/** A mutant may be told to grow to this; real limits are higher, and would let a declared length cost time. */
const MAX_DECODED_BYTES = 1024 * 1024;
/** Every so manyth forwarded mutant is compared with the reference down to its last item. */
const COMPARED = 16;
/** Of the refused mutants all are compared with the oracle, of the forwarded ones so many. */
const COMPARED_WITH_ORACLE = 4;
/** One in so many mutants goes through rules too. */
const RULED = 64;
const HANG_MS = 5_000;

const BASES = [...readVectors("rw1_requests"), ...readVectors("vm_requests")].flatMap(({ decoded }) => {
  const plain = encodeReference(expectedReference(decoded));
  return CUTS.map((maxBytes) => Uint8Array.from(cutToFields(plain, maxBytes)));
});
const BODIES = BASES.map((plain) => compress(plain));

const ROUTE = exampleRoute();
const ROUTES = [{ route: ROUTE, limits: { maxItems: 20, maxPlainBytes: 4096 } }];
const LABELS = { maxLabels: 64, maxLabelNameBytes: 1024, maxLabelValueBytes: 4096 };
const METADATA = { maxItems: 50, maxPlainBytes: 4096 };
const ORACLE = new Splitter(NO_RULES, ROUTES, LABELS, METADATA);
/** Its table is too small for all that comes, so that decisions are found in both generations, and lost. */
const ROUTER = routerOf(ROUTES, {
  labels: LABELS,
  metadata: METADATA,
  maxPlainBytes: MAX_DECODED_BYTES,
  tableSeries: 500,
});

const RULED_SPLIT = RULED_ROUTES.map((route) => ({ route, limits: { maxItems: 20, maxPlainBytes: 4096 } }));
const RULED_ORACLE = new Splitter(GLOBAL_RULES, RULED_SPLIT, LABELS, METADATA);
/** What is tried with rules changes nothing in the row of mutants. */
const OTHER_RANDOM = new Random(SEED + 1);
const RULED_ROUTER = routerOf(RULED_SPLIT, {
  labels: LABELS,
  metadata: METADATA,
  maxPlainBytes: MAX_DECODED_BYTES,
  tableSeries: 500,
  globalRules: GLOBAL_RULES,
  isDue: () => OTHER_RANDOM.once(10),
});

interface Mutant {
  readonly body: Uint8Array;
  /** Whether it has to be taken. */
  readonly isSound: boolean;
}

/** Half of the mutants are damaged before compression, half after. */
function makeMutant(number: number, random: Random): Mutant {
  const base = random.below(BASES.length);
  const plain = BASES[base] ?? new Uint8Array(0);
  if (number % 2 === 0) {
    return { body: damageBytes(BODIES[base] ?? new Uint8Array(0), random), isSound: false };
  }
  if (number % 4 === 1) {
    return { body: compress(Uint8Array.from(damageBytes(plain, random))), isSound: false };
  }
  const damaged = damageFields(plain, random);
  return { body: compress(Uint8Array.from(damaged.plain)), isSound: damaged.isSound };
}

const NATURAL = loadSchema("remote_write_v1.proto", "natural").lookupType("prometheus.WriteRequest");

/** Throws when what was forwarded is not what snappy's description and protobufjs find in the body. */
function checkForwarded(body: Uint8Array, result: Routed, inDetail: boolean): void {
  const plain = strictUncompress(body);
  const reference = decodeWriteRequest(plain);
  expectEqual(result.received.series, reference.timeseries.length, "series received");
  expectEqual(result.metadataEntries, reference.metadata.length, "metadata entries received");
  if (inDetail) compareWithReference(plain, result);
}

function compareWithReference(plain: Uint8Array, result: Routed): void {
  const reference = decodeReference(plain);
  let refused = 0;
  for (const { series } of result.refused.values()) refused += series;
  const series = result.consignments.flatMap(({ upstream, parcels }) =>
    parcels.flatMap(({ body }) => decodeForwarded(body).series.map((each) => ({ upstream, series: each }))),
  );
  expectEqual(series.length + refused, reference.series.length, "series forwarded and refused");
  expectPartOf(
    series,
    reference.series.map((each) => labelled(each, ROUTE)),
  );
  const metadata = result.metadata.flatMap(({ body }) => decodeForwarded(body).metadata);
  expectEqual(metadata.length + result.metadataDropped, reference.metadata.length, "metadata entries");
  expectPartOf(metadata, reference.metadata);
}

function decodeForwarded(body: Uint8Array): ReferenceRequest {
  const plain = uncompress(body);
  // Strict about UTF-8 in every string, as the raw decoder is not.
  NATURAL.decode(plain);
  return decodeReference(plain);
}

function expectEqual(got: number, wanted: number, what: string): void {
  if (got !== wanted) throw new Error(`${what}: want ${wanted}, got ${got}`);
}

function expectPartOf(part: readonly object[], whole: readonly object[]): void {
  const left = new Map<string, number>();
  for (const each of whole) {
    const text = JSON.stringify(each);
    left.set(text, (left.get(text) ?? 0) + 1);
  }
  for (const each of part) {
    const text = JSON.stringify(each);
    const count = left.get(text) ?? 0;
    if (count === 0) throw new Error(`forwarded, but not received: ${text}`);
    left.set(text, count - 1);
  }
}

describe("200,000 mutated recorded requests", () => {
  it("never crash, hang or forward what protobufjs would not have decoded", { timeout: 300_000 }, () => {
    const random = new Random(SEED);
    const failures: string[] = [];
    let refused = 0;
    let forwarded = 0;
    let slowestMs = 0;
    for (let number = 0; number < MUTANTS && failures.length < 5; number++) {
      const { body, isSound } = makeMutant(number, random);
      let isRefused = false;
      const started = performance.now();
      try {
        const result = routeBlock(ROUTER, body);
        slowestMs = Math.max(slowestMs, performance.now() - started);
        forwarded += 1;
        checkForwarded(body, result, forwarded % COMPARED === 0);
      } catch (error) {
        slowestMs = Math.max(slowestMs, performance.now() - started);
        refused += 1;
        isRefused = true;
        const mayBeRefused = error instanceof WireError && (!isSound || error.code === "WIRE_MESSAGE");
        if (!mayBeRefused)
          failures.push(`mutant ${number}: ${String(error)}; ${Buffer.from(body).toString("hex")}`);
      }
      if (isRefused || forwarded % COMPARED_WITH_ORACLE === 0) {
        const difference = routingDifference(ROUTER, ORACLE, body, MAX_DECODED_BYTES);
        if (difference !== null)
          failures.push(`mutant ${number}: ${difference}; ${Buffer.from(body).toString("hex")}`);
      }
      if (OTHER_RANDOM.once(RULED)) {
        const tenants = SEVERAL_TENANTS[OTHER_RANDOM.below(SEVERAL_TENANTS.length)];
        const difference = routingDifference(RULED_ROUTER, RULED_ORACLE, body, MAX_DECODED_BYTES, tenants);
        if (difference !== null)
          failures.push(`mutant ${number}, with rules: ${difference}; ${Buffer.from(body).toString("hex")}`);
      }
    }
    process.stdout.write(`${MUTANTS} mutants: ${refused} refused, ${forwarded} forwarded\n`);
    expect(failures).toEqual([]);
    expect(slowestMs).toBeLessThan(HANG_MS);
    // Damage that is always refused, or never, would show nothing.
    expect(Math.min(refused, forwarded)).toBeGreaterThan(MUTANTS / 10);
  });
});
