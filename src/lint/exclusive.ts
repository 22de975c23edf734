/** Routes of which no series goes to both. */
import type { RouteConfig } from "../config/config.ts";
import type { RelabelRule } from "../relabel/options.ts";
import { parseSelector } from "../relabel/selectorSyntax.ts";
import { actionOf, FILTERS } from "./carried.ts";
import { type LabelNames, only } from "./labelNames.ts";

/**
 * The labels, as they are before all routes, that decide which of two routes a series goes to, never to both: those that the
 * first of them selects by, if it is final. null where that is not certain.
 */
export function exclusiveBy(routes: readonly RouteConfig[], one: number, other: number): LabelNames | null {
  const first = routes[Math.min(one, other)]?.route;
  if (first?.final !== true) return null;
  const rules = first.relabel.rules;
  const change = rules.findIndex((rule) => !FILTERS.has(actionOf(rule)));
  const before = change < 0 ? rules : rules.slice(0, change);
  // A rule that selects by what another has made selects by labels that are hard to tell.
  if (rules.slice(before.length).some((rule) => FILTERS.has(actionOf(rule)))) return null;
  const read = before.flatMap(labelsRead);
  return first.tenant.label !== null && read.includes(first.tenant.label) ? null : only(read);
}

/** Labels that rules keep or drop series by. */
export function labelsFiltered(rules: readonly RelabelRule[]): string[] {
  return rules.filter((rule) => FILTERS.has(actionOf(rule))).flatMap(labelsRead);
}

function labelsRead(rule: RelabelRule): string[] {
  const action = actionOf(rule);
  const name = action === "keep_metrics" || action === "drop_metrics" ? ["__name__"] : [];
  const target = rule.targetLabel === null ? [] : [rule.targetLabel];
  const ofIf = (rule.if ?? []).flatMap(parseSelector).flatMap((filters) => filters.map(({ label }) => label));
  return [...name, ...(rule.sourceLabels ?? []), ...target, ...ofIf];
}
