/**
 * What other routes do to the groups of a rule behind a route: those that are judged with it, all of whose upstreams have the
 * aggregation file, and those that send to one of its vmagents.
 */
import { apartText, partingLabels } from "./apart.ts";
import { type Facts, factsOf } from "./facts.ts";
import { type Judgement, provenBy } from "./judgement.ts";
import { difference, isEmpty, type LabelNames, namesText, only } from "./labelNames.ts";
import { unmergeable } from "./outputs.ts";
import { isOfTasks, isSplit } from "./proofs.ts";
import { listed } from "./reasons.ts";
import type { WitnessSearch } from "./witness.ts";

export interface OtherRoutes {
  /** The worst that one of them does; null where all groups of the route are certain to be its own. */
  readonly judgement: Judgement | null;
  /** Why they are, one for each route that is among those that count. */
  readonly proofs: readonly string[];
}

/** Another route that counts. */
interface Neighbour {
  readonly facts: Facts;
  /** Names of its upstreams that are vmagents of the route for certain, and of those that may be. */
  readonly shared: readonly string[];
  readonly doubtful: readonly string[];
  readonly isJudged: boolean;
}

export function judgeOtherRoutes(facts: Facts, search: () => WitnessSearch): OtherRoutes {
  const proofs: string[] = [];
  let worst: Judgement | null = null;
  for (const index of facts.routing.routes.keys()) {
    const neighbour = neighbourOf(facts, index);
    if (neighbour === null) continue;
    const apart = apartText(facts, neighbour.facts);
    if (apart !== null) proofs.push(apart);
    else {
      const judgement = judgeNeighbour(facts, neighbour, search());
      if (judgement.verdict === "unsafe") return { judgement, proofs };
      worst ??= judgement;
    }
  }
  return { judgement: worst, proofs };
}

/** null for a route that has nothing to do with the one that is judged. */
function neighbourOf(facts: Facts, index: number): Neighbour | null {
  if (index === facts.route) return null;
  const { routing, together, upstreams: own } = facts;
  const ids = new Set(own.ids);
  const addresses = new Set(own.upstreams.map(({ vmagent }) => vmagent.address));
  const isJudged = together.includes(index);
  const at = routing.route(index).upstreams.filter(({ vmagent }) => addresses.has(vmagent.address));
  if (!isJudged && at.length === 0) return null;
  const named = (isShared: boolean): string[] =>
    at.filter(({ vmagent }) => ids.has(vmagent.id) === isShared).map(({ name }) => name);
  return {
    facts: factsOf({ ...facts, route: index }),
    shared: named(true),
    doubtful: named(false),
    isJudged,
  };
}

function judgeNeighbour(facts: Facts, neighbour: Neighbour, search: WitnessSearch): Judgement {
  const index = neighbour.facts.route;
  const parting = partingLabels(facts, neighbour.facts);
  const doubled = search.doubled(index);
  if (doubled !== null) {
    const [one, other] = doubled.arrivals;
    const how =
      one.vmagent.id === other.vmagent.id
        ? `${meetingText(facts, neighbour)}, which aggregates twice what both select`
        : `${meetingText(facts, neighbour)}, and each result of what both select is there twice`;
    return provenBy(doubled, how, [], remediesFor(facts, neighbour, parting));
  }
  const cannotMerge = unmergeable(facts.rule.outputs).length > 0;
  const witness = search.find(
    (one, other) => isSplit(one, other) || (cannotMerge && isOfTasks(one, other)),
    index,
  );
  const labels = listed(difference(parting, facts.group.names), null);
  const parted = labels.length === 0 ? "" : `, parted by ${labels.join(", ")}`;
  const reason = `${meetingText(facts, neighbour)}, and one group can have series of both${parted}`;
  return provenBy(witness, reason, labels, remediesFor(facts, neighbour, parting));
}

/** How two routes come together. */
function meetingText(facts: Facts, { facts: theirs, shared, doubtful }: Neighbour): string {
  const both = `the routes ${facts.judged.route.name} and ${theirs.judged.route.name}`;
  if (shared.length > 0) return `${both} both send to ${shared.join(", ")}`;
  if (doubtful.length === 0) return `${both} are judged together and lead to different vmagents`;
  return `${both} may both send to one vmagent, at ${doubtful.join(", ")} by another path of the same address`;
}

function remediesFor(facts: Facts, neighbour: Neighbour, parting: LabelNames): string[] {
  const { judged, taskLabel, group, route } = facts;
  const { facts: theirs, shared, doubtful, isJudged } = neighbour;
  const [one, other] = [judged.route.name, theirs.judged.route.name];
  const meet = shared.length > 0 || doubtful.length > 0;
  const named = `--route ${one} or --route ${other}, where only one of them leads to vmagents with this file`;
  const own = `upstreams of its own for one of the two routes${isJudged ? ", and --route for the other" : ""}`;
  const kept = difference(group.names, only(taskLabel === null ? [] : [taskLabel]));
  const by = `by labels that the groups have (${namesText(kept)})`;
  const first = route < theirs.route ? one : other;
  const final = isEmpty(parting)
    ? `final: true at ${first}, if it selects its series ${by}`
    : `routes that select their series ${by}`;
  return [meet ? own : named, final];
}
