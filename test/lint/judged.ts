/** Reads the texts of a pair and judges it. */
import { parseAggregation, type AggregationRule } from "../../src/config/aggregationFile.ts";
import type { Config } from "../../src/config/config.ts";
import { parseConfig } from "../../src/config/load.ts";
import { formatProblem, type Problem } from "../../src/config/problem.ts";
import { parseRelabelRules } from "../../src/config/relabelSection.ts";
import { placementFault } from "../../src/hash/placementFault.ts";
import type { Judgement } from "../../src/lint/judgement.ts";
import { Routing } from "../../src/lint/routing.ts";
import { judge } from "../../src/lint/verdict.ts";
import type { RelabelRuleList } from "../../src/relabel/options.ts";
import { faultOf } from "../../src/relabel/rules.ts";

export function readConfig(text: string): Config {
  const options = { legacyHash: "jump", checkRule: faultOf, checkPlacement: placementFault } as const;
  const { config, problems } = parseConfig(text, "gateway.yaml", options);
  return config ?? invalid(problems);
}

export function readAggregation(text: string): readonly AggregationRule[] {
  const { rules, problems } = parseAggregation(text, "aggr.yaml", faultOf);
  return rules ?? invalid(problems);
}

export function readRelabel(text: string): RelabelRuleList {
  const { rules, problems } = parseRelabelRules(text, "vmagent.yaml", "victoriametrics", faultOf);
  return rules ?? invalid(problems);
}

/**
 * The first rule behind a route, by default the first.
 *
 * @param together the routes that are judged with it, by default all
 */
export function judged(
  config: string,
  aggregation: string,
  relabel = "[]",
  route = 0,
  together?: readonly number[],
): Judgement {
  const [rule] = readAggregation(aggregation);
  if (rule === undefined) throw new Error("no rule");
  const routing = new Routing(readConfig(config));
  const all = [...routing.routes.keys()];
  return judge({ routing, route, together: together ?? all, vmagentRules: readRelabel(relabel), rule });
}

function invalid(problems: readonly Problem[]): never {
  throw new Error(problems.map(formatProblem).join("\n"));
}
