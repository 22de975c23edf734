/** Compares what the router and the oracle make of the same request, refusals included. */
import { uncompress } from "snappyjs";
import { WireError } from "../../src/wire/errors.ts";
import { uncompressBlock } from "../../src/wire/snappy.ts";
import type { Router } from "../../src/route/router.ts";
import type { RequestTenants } from "../../src/route/tenants.ts";
import { NO_TENANTS, type RoutedParcel, routeBlock } from "../route/routed.ts";
import type { Consignment, Splitter, SplitRequest } from "./split.ts";

/** Answers what differs between the two, or null. Both get the same snappy block. */
export function routingDifference(
  router: Router,
  oracle: Splitter,
  block: Uint8Array,
  maxPlainBytes: number,
  tenants: RequestTenants = NO_TENANTS,
): string | null {
  const got = outcomeOf(() => routeBlock(router, block, tenants));
  const wanted = outcomeOf(() => oracle.split(uncompressBlock(block, maxPlainBytes), tenants.byRoute));
  return got === wanted ? null : `want ${cut(wanted)}, got ${cut(got)}`;
}

/** All of an outcome as text, what was forwarded as hex of the plain bytes. */
function outcomeOf(route: () => SplitRequest): string {
  try {
    // The hash of the body is the router's own matter.
    const { refused, consignments, tallies, ...rest } = { ...route(), blockHash: undefined };
    const parts = {
      ...rest,
      refused: [...refused],
      consignments: consignments.toSorted(byUpstream),
      tallies: tallies.map(({ tally, counts }) => JSON.stringify({ ...tally, ...counts })).sort(),
    };
    return JSON.stringify(parts, (_key, value: unknown) => asText(value));
  } catch (error) {
    if (error instanceof WireError) return `${error.code} at ${error.offset}: ${error.message}`;
    throw error;
  }
}

/** Upstreams are independent of each other: whose parcels are named first means nothing. */
function byUpstream(a: Consignment, b: Consignment): number {
  return a.route - b.route || a.upstream - b.upstream || a.replica - b.replica;
}

function asText(value: unknown): unknown {
  if (value !== null && typeof value === "object" && "body" in value) {
    const { body, ...rest } = value as RoutedParcel;
    return { ...rest, plain: Buffer.from(uncompress(body)).toString("hex") };
  }
  return value;
}

function cut(text: string): string {
  return text.length > 2000 ? `${text.slice(0, 2000)}...` : text;
}
