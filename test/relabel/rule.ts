/** Rules for tests. */
import type { RelabelRule } from "../../src/relabel/options.ts";

const NOTHING: RelabelRule = {
  action: null,
  sourceLabels: null,
  separator: null,
  regex: null,
  targetLabel: null,
  replacement: null,
  modulus: null,
  if: null,
  match: null,
  labels: null,
};

/** A rule in which only these fields are written. */
export function ruleOf(fields: Partial<RelabelRule>): RelabelRule {
  return { ...NOTHING, ...fields };
}
