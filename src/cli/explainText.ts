/** An explanation as lines for a person. */
import { labelText } from "../route/labelText.ts";
import type { Explanation, OfferedExplanation, RouteExplanation } from "./explain.ts";
import { type RuleStep, stepLines } from "./ruleSteps.ts";
import type { Labels } from "./seriesLines.ts";

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
  const {
    tenant_label: tenantLabel,
    relabel_configs: steps = [],
    write_relabel_configs: written = [],
  } = route;
  const lines = [
    ...(tenantLabel === undefined ? [] : [row("tenant label", labelText(tenantLabel))]),
    ...stepLines(steps, "rule", tenantLabel ?? before),
  ];
  if (route.selected === false) return [...lines, `not selected${describeFinal(route.final)}`];
  if (route.placement_key !== undefined) {
    if (route.task !== undefined) {
      lines.push(row("key", String(route.key ?? "")), row("task", String(route.task)));
    }
    lines.push(
      row("placement key", String(route.placement_key)),
      row("slot", (route.slots ?? []).join(", ")),
      row("upstream", (route.upstreams ?? []).join(", ")),
    );
  }
  // The task label has come in between.
  lines.push(...stepLines(written, "write rule", null));
  if (route.dropped !== undefined) lines.push(`dropped: ${route.dropped}`);
  if (route.labels !== undefined) lines.push(row("forwarded as", labelText(route.labels)));
  return lines;
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
