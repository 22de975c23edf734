/** Two routes, and whether an aggregation rule can have series of both in one group. */
import { exclusiveBy } from "./exclusive.ts";
import { type Facts, groupedFromBefore } from "./facts.ts";
import { includes, isWithin, type LabelNames, NO_LABEL, namesText, only, union } from "./labelNames.ts";
import { among, excludeEachOther, isNone, type LabelValues } from "./labelValues.ts";
import { areOne } from "./vmagents.ts";

/** Why no group has series of both routes, in words that follow a semicolon; null where that is not certain. */
export function apartText(ours: Facts, theirs: Facts): string | null {
  const { config } = ours.routing;
  const name = theirs.judged.route.name;
  const selectedBy = exclusiveBy(config.routes, ours.route, theirs.route);
  if (
    selectedBy !== null &&
    [ours, theirs].every((facts) => isWithin(selectedBy, groupedFromBefore(facts)))
  ) {
    const first = ours.route < theirs.route ? ours : theirs;
    const by = `${first.judged.route.name} is final and selects by ${namesText(selectedBy)}`;
    return `no group has series of ${name} too, since ${by}`;
  }
  if (areAsOne(ours, theirs)) return `no series is of ${name} too, and both routes send to one vmagent`;
  const [one, other] = [valuesIn(ours), valuesIn(theirs)];
  const missing = [...other].find(([, values]) => isNone(values));
  if (missing !== undefined) return `the rule has no series of ${name}, by ${missing[0]}`;
  const apart = exclusiveLabels(one, other).find(
    (label) => isGrouped(ours, label) && isGrouped(theirs, label),
  );
  return apart === undefined
    ? null
    : `no group has series of ${name} too, which has other values of ${apart}`;
}

/** Whether two routes give one vmagent what one route would. */
function areAsOne(ours: Facts, theirs: Facts): boolean {
  const [first] = [ours, theirs].sort((one, other) => one.route - other.route);
  const vmagents = [ours, theirs].flatMap(({ upstreams }) =>
    upstreams.upstreams.map(({ vmagent }) => vmagent),
  );
  const areWithoutTasks = ours.fate === "gone" && theirs.fate === "gone";
  return first?.judged.route.final === true && areWithoutTasks && areOne(vmagents);
}

/** Labels that part the series of two routes, as far as it is certain that they do. */
export function partingLabels(ours: Facts, theirs: Facts): LabelNames {
  const selectedBy = exclusiveBy(ours.routing.config.routes, ours.route, theirs.route);
  return union(selectedBy ?? NO_LABEL, only(exclusiveLabels(valuesIn(ours), valuesIn(theirs))));
}

function exclusiveLabels(one: LabelValues, other: LabelValues): string[] {
  return [...one].flatMap(([label, values]) => {
    const others = other.get(label);
    return others !== undefined && excludeEachOther(values, others) ? [label] : [];
  });
}

/** Values that labels may have in the series of a route that are the rule's, as they are behind the route's own rules. */
function valuesIn({ upstreams, arriving, selection }: Facts): LabelValues {
  const values = new Map(upstreams.values);
  for (const [label, texts] of selection.values) {
    if (includes(arriving.names, label)) values.set(label, among(values.get(label), texts));
  }
  return values;
}

function isGrouped({ group }: Facts, label: string): boolean {
  return includes(group.names, label);
}
