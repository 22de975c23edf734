/** The search for a witness against a rule. */
import { besidesTask, type Facts } from "./facts.ts";
import { Journeys } from "./journeys.ts";
import { difference, includes, union } from "./labelNames.ts";
import { labelsNamed, seedsOf, type Selecting, selectingLabels, variantsOf } from "./seeds.ts";
import { WitnessSearch } from "./witness.ts";

export function searchFor(facts: Facts): WitnessSearch {
  const { routing, route, aggregators, vmagentRules, rule, selection, asked, taskLabel, judged } = facts;
  const { config } = routing;
  const ofRoute = [config.relabel, judged.route.relabel, vmagentRules, rule.inputRelabel];
  const otherRoutes = config.routes.filter((each) => each !== judged);
  const selecting: Selecting = {
    selection,
    rules: ofRoute.flatMap((list) => list.rules),
    otherRules: otherRoutes.flatMap(({ route: { relabel } }) => relabel.rules),
  };
  const gatewayRules = [config.relabel, ...config.routes.map((each) => each.route.relabel)].flatMap(
    (list) => list.rules,
  );
  const isOfSeries = (name: string): boolean => name !== taskLabel;
  const names = [
    ...new Set([...asked, ...labelsNamed([...selecting.rules, ...selecting.otherRules])]),
  ].filter(isOfSeries);
  // Nothing but these decides where a series goes, and what becomes of them is up to the gateway's rules.
  const deciding = union(facts.upstreamByLabels, facts.taskBy);
  const atFault = difference(deciding, besidesTask(facts.determined, facts));
  const likely = names.filter((name) => includes(atFault, name));
  const { key } = judged.route.placement;
  return new WitnessSearch(new Journeys(routing, vmagentRules, rule), {
    route,
    aggregators,
    seeds: seedsOf(selecting, names, "names" in key ? key.names : []),
    labels: [
      ...new Set([...likely, ...[...labelsNamed(gatewayRules), ...routing.selectedBy].filter(isOfSeries)]),
    ],
    valuesOf: variantsOf(selecting),
    selecting: new Map(
      config.routes.map((each, index) => [
        index,
        each === judged ? [] : selectingLabels(each.route.relabel.rules),
      ]),
    ),
    spare: names.filter((name) => name !== "__name__" && !rule.by.includes(name)),
  });
}
