/** The ten rules of the scenarios with rules: rules.yaml, which says why these. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { formatProblem } from "../../src/config/problem.ts";
import { loadRelabelRules } from "../../src/config/relabelSection.ts";
import type { RelabelRuleList } from "../../src/relabel/options.ts";
import { faultOf } from "../../src/relabel/rules.ts";
import { REPOSITORY } from "./tools.ts";

export const RULES_FILE = join(REPOSITORY, "test/bench/rules.yaml");

/** @throws {Error} with what is wrong in the file */
export function readRules(file: string): RelabelRuleList {
  const { rules, problems } = loadRelabelRules(file, "prometheus", faultOf);
  if (rules === null) throw new Error(problems.map(formatProblem).join("\n"));
  return rules;
}

/** The list of a file as the value of a key in another YAML document. */
export function indentedRules(file: string, spaces: number): string {
  return readFileSync(file, "utf8").replace(/^(?=.)/gm, " ".repeat(spaces));
}
