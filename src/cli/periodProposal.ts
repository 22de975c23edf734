/** The periods that bring a change of lists into force at a moment, as far as they can be written so that `check` accepts them. */
import type { Config } from "../config/config.ts";
import { checkDocument, type LoadOptions } from "../config/load.ts";
import type { MapNode } from "../config/node.ts";
import { formatProblem } from "../config/problem.ts";
import { formatMoment } from "../moment.ts";
import { type RoutePair, routePairs } from "../plan/routePair.ts";
import { newestPeriod } from "../route/renumbering.ts";
import { newestFromPlace, proposedTopology, withTopologies } from "./topologyProposal.ts";

/** A file without errors. */
export interface ValidFile {
  readonly name: string;
  readonly config: Config;
  /** In native form. */
  readonly document: MapNode;
}

export type PeriodProposal =
  /** By route, those that differ in their lists alone; to be put in the place of their upstreams or topology. */
  | { readonly kind: "proposed"; readonly topologies: ReadonlyMap<string, MapNode> }
  /** Why there is no valid one, a line each. */
  | { readonly kind: "refused"; readonly lines: readonly string[] };

/**
 * Proposes periods for a change.
 *
 * @param fromMs  milliseconds since the epoch, see effectiveFrom()
 * @param options that the new file is read with
 */
export function proposePeriods(
  before: ValidFile,
  after: ValidFile,
  fromMs: number,
  options: LoadOptions,
): PeriodProposal {
  const pairs = routePairs(before.config, after.config).filter(differInLists);
  const late = pairs.flatMap((pair) => lateFault(pair, before, fromMs));
  if (late.length > 0) return { kind: "refused", lines: late };
  const topologies = new Map<string, MapNode>();
  for (const { name } of pairs) {
    const topology = proposedTopology(before.document, after.document, name, fromMs);
    if (topology !== null) topologies.set(name, topology);
  }
  const lines = faultsOf(after, topologies, options);
  return lines.length > 0 ? { kind: "refused", lines } : { kind: "proposed", topologies };
}

/** Whether nothing but the newest list differs, and that does. */
function differInLists(pair: RoutePair): boolean {
  const newest = pair.eras.at(-1);
  return pair.keysAlike && newest !== undefined && !pair.isSameIn(newest);
}

/** What is said when a period that is there already begins at the moment or behind it. */
function lateFault(pair: RoutePair, { name: file, document }: ValidFile, fromMs: number): string[] {
  const newestMs = pair.before === null ? null : newestPeriod(pair.before.planned.route).fromMs;
  const place = newestFromPlace(document, pair.name);
  if (newestMs === null || newestMs < fromMs || place === null) return [];
  const message =
    `want a period that begins before ${formatMoment(fromMs)}, where --effective puts the change, since periods ascend; ` +
    `got ${formatMoment(newestMs)}: choose a longer --effective, or write the change into this period's list`;
  return [formatProblem({ severity: "error", file, ...place, message })];
}

/** What `check` would say of the file with the periods. Its lines are of both files, so paths have to do. */
function faultsOf(
  { name, document }: ValidFile,
  topologies: ReadonlyMap<string, MapNode>,
  options: LoadOptions,
): string[] {
  return checkDocument(withTopologies(document, topologies), name, options)
    .filter(({ severity }) => severity === "error")
    .map(({ path, message }) => `${name}: ${path}, with the change as a period: ${message}`);
}
