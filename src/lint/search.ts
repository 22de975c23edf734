/** The search for a witness against a rule. */
import { besidesTask, type Facts } from "./facts.ts";
import { Journeys } from "./journeys.ts";
import { difference, includes, union } from "./labelNames.ts";
import { labelsNamed, seedsOf, type Selecting, variantsOf } from "./seeds.ts";
import { WitnessSearch } from "./witness.ts";

export function searchFor(facts: Facts): WitnessSearch {
  const { config, vmagentRules, rule, selection, asked, taskLabel, judged } = facts;
  const ofRoute = [config.relabel, judged.route.relabel, vmagentRules, rule.inputRelabel];
  const otherRoutes = config.routes.filter((each) => each !== judged);
  const selecting: Selecting = {
    selection,
    rules: ofRoute.flatMap((list) => list.rules),
    otherRules: otherRoutes.flatMap(({ route }) => route.relabel.rules),
  };
  const gatewayRules = [config.relabel, ...config.routes.map(({ route }) => route.relabel)].flatMap(
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
  const labels = [...new Set([...likely, ...labelsNamed(gatewayRules).filter(isOfSeries)])];
  const journeys = new Journeys(config, vmagentRules, rule);
  const place = { route: facts.route, urls: facts.urls };
  const { key } = judged.route.placement;
  const keyNames = "names" in key ? key.names : [];
  const spare = names.filter((name) => name !== "__name__" && !rule.by.includes(name));
  return new WitnessSearch(
    journeys,
    place,
    seedsOf(selecting, names, keyNames),
    labels,
    variantsOf(selecting),
    spare,
  );
}
