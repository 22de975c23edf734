/** Decisions as tests compare them: with the labels that leave for the upstream. */
import type { RelabelRule } from "../../src/relabel/options.ts";
import { type CopyDecision, Decider, type Decision, type DecisionWitness } from "../../src/route/decide.ts";
import type { LabelLimits } from "../../src/route/options.ts";
import type { Placed } from "../../src/route/place.ts";
import type { Tenant } from "../../src/route/tenants.ts";
import type { SeriesScan } from "../../src/wire/scan.ts";
import { seriesRequest } from "../../src/wire/labelField.ts";
import { spliced } from "../../src/wire/splice.ts";
import { decodeReference } from "../reference/writeRequest.ts";
import { seriesOf } from "../wire/handmade.ts";
import { scanOfOne } from "../wire/scanned.ts";
import { exampleRoute, type RouteChanges } from "./exampleRoute.ts";
import { LABEL_LIMITS } from "./routed.ts";
import { rulesOf } from "./rules.ts";

export type Pairs = readonly (readonly [string, string])[];

export interface Setting {
  readonly globalRules?: readonly RelabelRule[];
  /** What is different in each route from exampleRoute(). */
  readonly routes?: readonly RouteChanges[];
  readonly limits?: Partial<LabelLimits>;
  /** What the header says, to all routes. */
  readonly tenant?: string;
}

/** What becomes of a copy: "dropped: reason", or labels that leave. */
export type CopyOutcome = string | Pairs;

/** What a route does: "not_selected", "dropped: reason", or what becomes of the only copy, or of all. */
export type RouteOutcome = CopyOutcome | { readonly copies: readonly CopyOutcome[] };

/** What becomes of a series: "refused: reason", "dropped: reason", or what each route does. */
export type Outcome = string | readonly RouteOutcome[];

export function tenantOf(text: string): Tenant {
  return { header: Buffer.from(text).toString("latin1"), text };
}

export function decisionOf(labels: Pairs, setting: Setting, witness?: DecisionWitness): Decision {
  return decide(scanOfOne(seriesOf(labels)), setting, witness);
}

export function outcomeOf(labels: Pairs, setting: Setting): Outcome {
  const scan = scanOfOne(seriesOf(labels));
  const decision = decide(scan, setting);
  if (decision.kind === "refused") return `refused: ${decision.reason}`;
  if (decision.kind === "dropped") return `dropped: ${decision.reason}`;
  return decision.routes.map((each): RouteOutcome => {
    if (each.kind === "not_selected") return each.kind;
    if (each.kind === "dropped") return `dropped: ${each.reason}`;
    const copies = each.copies.map(({ copy }) => copyOutcome(copy, scan));
    return copies.length === 1 ? (copies[0] ?? []) : { copies };
  });
}

function copyOutcome(copy: CopyDecision, { bytes, start, end }: SeriesScan): CopyOutcome {
  if (copy.kind === "dropped") return `dropped: ${copy.reason}`;
  return pairsOf(seriesRequest(spliced(bytes.subarray(start, end), ...copy.splices)));
}

/** Where the first route places a series; null when it has no place there. */
export function placedOf(labels: Pairs, setting: Setting): Placed | null {
  const decision = decisionOf(labels, setting);
  const first = decision.kind === "offered" ? decision.routes[0] : undefined;
  return first?.kind === "placed" ? first.placed : null;
}

function decide(series: SeriesScan, setting: Setting, witness?: DecisionWitness): Decision {
  const { globalRules = [], routes = [{}], limits, tenant } = setting;
  const options = routes.map((route) => exampleRoute(route));
  const decider = new Decider(rulesOf(...globalRules), options, { ...LABEL_LIMITS, ...limits });
  const tenants = options.map(() => (tenant === undefined ? null : tenantOf(tenant)));
  return decider.decide(series, tenants, witness);
}

function pairsOf(plain: Uint8Array): Pairs {
  const text = (latin1: string): string => Buffer.from(latin1, "latin1").toString();
  return (decodeReference(plain).series[0]?.labels ?? []).map(([name, value]) => [text(name), text(value)]);
}
