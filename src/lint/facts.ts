/** What is certain of a route and an aggregation rule behind it: which labels decide, and which come through. */
import type { AggregationRule } from "../config/aggregationFile.ts";
import type { Config, RouteConfig } from "../config/config.ts";
import type { RelabelRuleList } from "../relabel/options.ts";
import type { RouteOptions } from "../route/options.ts";
import { ALL_CARRIED, type Carried, carriedThrough, carriedThroughList, lose } from "./carried.ts";
import { groupLabels, groupText } from "./groups.ts";
import { taskLabels, upstreamLabels } from "./keyLabels.ts";
import {
  difference,
  EVERY_LABEL,
  includes,
  intersection,
  type LabelNames,
  NO_LABEL,
  only,
  union,
} from "./labelNames.ts";
import type { Routing, RoutingRoute } from "./routing.ts";
import { type Selection, selectionOf } from "./selection.ts";
import { settledAfter } from "./settled.ts";
import { type TaskFate, taskFate } from "./taskFate.ts";

/** What is judged. */
export interface Case {
  readonly routing: Routing;
  /** Which route of the configuration. */
  readonly route: number;
  /** The routes whose upstreams all are vmagents with the aggregation file: this one alone, or all of them. */
  readonly together: readonly number[];
  /** What vmagent applies to all series before it aggregates, in its dialect. */
  readonly vmagentRules: RelabelRuleList;
  readonly rule: AggregationRule;
}

export interface Facts extends Case {
  readonly judged: RouteConfig;
  readonly upstreams: RoutingRoute;
  /** Vmagents of all routes that are judged together, by their ids. */
  readonly aggregators: ReadonlySet<string>;
  readonly selection: Selection;
  /** null when the route has no tasks. */
  readonly taskLabel: string | null;
  /** Names of labels that keys and rules speak of, and of some that series mostly have. */
  readonly asked: readonly string[];
  /** Labels as they arrive, those of the input series, and of the group. */
  readonly arriving: Carried;
  readonly input: Carried;
  readonly group: Carried;
  /** Labels with one value in all series of the rule by its match, and those with one in all series of a group. */
  readonly fixed: LabelNames;
  readonly determined: LabelNames;
  /** Labels that decide the upstream, the task label among them; the task; and the upstream, without the task label. */
  readonly upstreamBy: LabelNames;
  readonly taskBy: LabelNames;
  readonly upstreamByLabels: LabelNames;
  /** Whether the task tells groups apart; `gone` in a route without tasks. */
  readonly fate: TaskFate;
}

/** Labels that are nearly always there, and those of buckets, which nobody means to have in a key. */
export const USUAL_LABELS = ["instance", "pod", "replica", "le", "vmrange"];

export function factsOf(given: Case): Facts {
  const { routing, together, vmagentRules, rule } = given;
  const { config } = routing;
  const upstreams = routing.route(given.route);
  const { judged } = upstreams;
  const { route } = judged;
  const selection = selectionOf(rule.match);
  const taskLabel = route.tasks?.label ?? null;
  const asked = [...new Set([...namesOfInterest(route, rule, selection), ...routing.selectedBy])];
  const arriving = arrivingAt(route, vmagentRules, ALL_CARRIED, asked);
  const input = inputOf(rule, arriving, asked);
  const group = groupOf(rule, input);
  const fixed = intersection(selection.fixed, arriving.names);
  const determined = union(union(group.names, fixed), settledIn(config, route));
  const present = intersection(selection.present, arriving.names);
  const upstreamBy = upstreamLabels(route, (names) => names.some((name) => includes(present, name)));
  const taskBy = route.tasks === null ? NO_LABEL : taskLabels(route.tasks);
  return {
    ...given,
    judged,
    upstreams,
    aggregators: new Set(together.flatMap((index) => routing.route(index).ids)),
    selection,
    taskLabel,
    asked,
    arriving,
    input,
    group,
    fixed,
    determined,
    upstreamBy,
    taskBy,
    upstreamByLabels:
      taskLabel !== null && includes(upstreamBy, taskLabel)
        ? union(difference(upstreamBy, only([taskLabel])), taskBy)
        : upstreamBy,
    fate: taskLabel === null ? "gone" : taskFate(taskLabel, group, route, vmagentRules, rule),
  };
}

/** Labels without the task label. */
export function besidesTask(names: LabelNames, { taskLabel }: Facts): LabelNames {
  return taskLabel === null ? names : difference(names, only([taskLabel]));
}

/** What comes from before the route's rules into the groups. */
export function groupedFromBefore({ judged, rule, vmagentRules, asked }: Facts): LabelNames {
  const { relabel, tenant, tasks } = judged.route;
  const own = [tenant.label, tasks?.label ?? null].filter((label) => label !== null);
  const theirs = lose(ALL_CARRIED, only(own), "the gateway's");
  const ruled = carriedThroughList(theirs, relabel, "relabel_configs of the route", asked);
  return groupOf(rule, inputOf(rule, arrivingAt(judged.route, vmagentRules, ruled, asked), asked)).names;
}

/** What an aggregation rule gets, whichever of the upstreams it is at. */
function arrivingAt(
  { upstreams }: RouteOptions,
  vmagentRules: RelabelRuleList,
  carried: Carried,
  asked: readonly string[],
): Carried {
  const written = upstreams.reduce(
    (before, { name, writeRelabel }) =>
      carriedThroughList(before, writeRelabel, `write_relabel_configs of ${name}`, asked),
    carried,
  );
  return carriedThroughList(written, vmagentRules, "vmagent's relabelConfig", asked);
}

function inputOf(
  { dropInputLabels, inputRelabel }: AggregationRule,
  arriving: Carried,
  asked: readonly string[],
): Carried {
  const dropped = lose(arriving, only(dropInputLabels), "dropped by drop_input_labels");
  return carriedThrough(dropped, inputRelabel, "input_relabel_configs", asked);
}

function groupOf(rule: AggregationRule, input: Carried): Carried {
  return lose(input, difference(EVERY_LABEL, groupLabels(rule)), groupText(rule));
}

/** Labels that are the same in all series of the route, or in none of them. */
function settledIn(config: Config, { relabel, tenant, tasks }: RouteOptions): LabelNames {
  const before = settledAfter(NO_LABEL, config.relabel);
  const withTenant = tenant.label === null ? before : difference(before, only([tenant.label]));
  const settled = settledAfter(withTenant, relabel);
  return tasks === null ? settled : difference(settled, only([tasks.label]));
}

function namesOfInterest(
  { tasks, placement }: RouteOptions,
  { by, without, dropInputLabels }: AggregationRule,
  { alternatives }: Selection,
): string[] {
  const ofKeys = [placement.key, tasks?.key].flatMap((key) =>
    key !== undefined && "names" in key ? key.names : [],
  );
  const ofMatch = (alternatives ?? []).flat().map(({ label }) => label);
  const ofTask = tasks === null ? [] : [tasks.label];
  const ofRule = [...without, ...dropInputLabels, ...by];
  return [...new Set(["__name__", ...ofKeys, ...ofRule, ...ofMatch, ...ofTask, ...USUAL_LABELS])];
}
