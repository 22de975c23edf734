/** An explanation as lines for a person. */
import { labelText } from "../route/labelText.ts";
import type {
  CopyOutcome,
  Explanation,
  OfferedExplanation,
  PeriodExplanation,
  RouteExplanation,
} from "../explain/explainer.ts";
import { type RuleStep, stepLines } from "../explain/ruleSteps.ts";
import type { Labels } from "./seriesLines.ts";
import { shortened } from "../plan/shortened.ts";

const INDENT = "  ";

/** @param labels the series as it came */
export function describeExplanation(labels: Labels, explanation: Explanation): string[] {
  const series = labelText(labels);
  if ("refused" in explanation) return [`${series} is refused as it comes in: ${explanation.refused}`];
  const { dropped, relabel_configs: globalSteps = [], routes } = explanation;
  const afterGlobal = lastLabels(globalSteps, labels);
  return [
    series,
    ...stepLines(globalSteps, "global rule", labels).map((line) => INDENT + line),
    ...routes.flatMap((route) => [
      `${INDENT}route ${route.route}`,
      ...describeRoute(route, afterGlobal).map((line) => INDENT + INDENT + line),
    ]),
    ...describeDrop(dropped),
  ];
}

function describeDrop(dropped: OfferedExplanation["dropped"]): string[] {
  if (dropped === undefined) return [];
  return [`${INDENT}dropped: ${dropped}`];
}

function describeRoute(route: RouteExplanation, before: Labels): string[] {
  const { tenant_label: tenantLabel, relabel_configs: steps = [], slots = [], upstreams = [] } = route;
  const lines = [
    ...(tenantLabel === undefined ? [] : [row("tenant label", labelText(tenantLabel))]),
    ...stepLines(steps, "rule", tenantLabel ?? before),
  ];
  if (route.selected === false) return [...lines, `not selected${describeFinal(route.final)}`];
  if (route.placement_key !== undefined) {
    if (route.task !== undefined) {
      lines.push(row("key", String(route.key ?? "")), row("task", String(route.task)));
    }
    if (route.period !== undefined) lines.push(row("period", periodText(route.period)));
    lines.push(
      row("placement key", String(route.placement_key)),
      row(slots.length > 1 ? "slots" : "slot", slots.join(", ")),
      row(upstreams.length > 1 ? "upstreams" : "upstream", upstreams.join(", ")),
    );
  }
  const copies = (route.copies ?? []).flatMap((copy) => [
    `copy for ${copy.upstream}`,
    ...describeOutcome(copy).map((line) => INDENT + line),
  ]);
  return [...lines, ...copies, ...describeOutcome(route)];
}

function periodText({ from, until, slots }: PeriodExplanation): string {
  const span = [from === null ? [] : [`from ${from}`], until === null ? [] : [`until ${until}`]]
    .flat()
    .join(" ");
  return `${span}: ${shortened(slots)}`;
}

function describeOutcome({ write_relabel_configs: written = [], dropped, labels }: CopyOutcome): string[] {
  return [
    // The task label has come in between.
    ...stepLines(written, "write rule", null),
    ...(dropped === undefined ? [] : [`dropped: ${dropped}`]),
    ...(labels === undefined ? [] : [row("forwarded as", labelText(labels))]),
  ];
}

function describeFinal(name: string | undefined): string {
  return name === undefined ? "" : `: route ${name} is final and kept it`;
}

function row(name: string, value: string): string {
  return `${name.padEnd(15)}${value}`;
}

function lastLabels(steps: readonly RuleStep[], before: Labels): Labels {
  const last = steps.at(-1);
  return last === undefined || "dropped" in last ? before : last.labels;
}
