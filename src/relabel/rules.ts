/**
 * A list of relabel rules, compiled once and applied to many series.
 *
 * Labels are strings here: that is exact for valid UTF-8, and whoever applies rules has refused everything else before.
 * Where order shows, it is that of the UTF-8 bytes.
 *
 * A list in the dialect of VictoriaMetrics ends as every list of vmagent does: labels whose names begin with two underscores
 * are removed, but for __name__, and a series without labels is dropped. An empty list does neither.
 */
import { RelabelError } from "./errors.ts";
import type { RelabelDialect, RelabelFault, RelabelRule, RelabelRuleList } from "./options.ts";
import { prometheusStep } from "./prometheusActions.ts";
import { PrometheusLabels } from "./prometheusLabels.ts";
import { checkPrometheusRule } from "./prometheusRule.ts";
import { victoriaMetricsStep } from "./victoriaMetricsActions.ts";
import { VictoriaMetricsLabels } from "./victoriaMetricsLabels.ts";
import { checkVictoriaMetricsRule } from "./victoriaMetricsRule.ts";
import type { Label } from "./workingLabels.ts";

export type { Label } from "./workingLabels.ts";

export type RelabelOutcome =
  | {
      readonly kind: "kept";
      /** The labels that came in, when nothing changed, else sorted by name; may be none, or without a metric name. */
      readonly labels: readonly Label[];
      readonly changed: boolean;
    }
  | {
      readonly kind: "dropped";
      /** Which rule did it, from 0. */
      readonly rule: number;
    };

/**
 * Told the labels after every rule that did not drop the series, its number from 0; and with the number behind the last one
 * after the end of a list of VictoriaMetrics, if that removed some.
 */
export type AfterRule = (rule: number, labels: readonly Label[]) => void;

type Apply = (labels: readonly Label[], afterRule?: AfterRule) => RelabelOutcome;

/** Compiled rules. Frozen after their making, except for what the regex engine caches. */
export class RelabelRules {
  readonly #apply: Apply;

  /** @throws {RelabelError} when faultOf() has something against one of the rules */
  constructor({ dialect, rules }: RelabelRuleList) {
    this.#apply = dialect === "prometheus" ? prometheusRules(rules) : victoriaMetricsRules(rules);
  }

  /**
   * Applies the rules in their order, up to one that drops the series.
   *
   * @param labels unique names, valid Unicode; not changed
   */
  apply(labels: readonly Label[], afterRule?: AfterRule): RelabelOutcome {
    return this.#apply(labels, afterRule);
  }
}

function prometheusRules(rules: readonly RelabelRule[]): Apply {
  const steps = rules.map((rule) => prometheusStep(checkPrometheusRule(rule)));
  return (labels, afterRule) => {
    const working = new PrometheusLabels(labels);
    for (let rule = 0; rule < steps.length; rule++) {
      if (steps[rule]?.(working) === false) return { kind: "dropped", rule };
      afterRule?.(rule, working.result());
    }
    return kept(labels, working.result());
  };
}

function victoriaMetricsRules(rules: readonly RelabelRule[]): Apply {
  if (rules.length === 0) return (labels) => kept(labels, labels);
  const steps = rules.map((rule) => victoriaMetricsStep(checkVictoriaMetricsRule(rule)));
  return (labels, afterRule) => {
    const working = new VictoriaMetricsLabels(labels);
    for (let rule = 0; rule < steps.length; rule++) {
      if (steps[rule]?.(working) === false) return { kind: "dropped", rule };
      afterRule?.(rule, working.result());
    }
    const hasHidden = working.removeWhere(isHidden);
    const result = working.result();
    if (hasHidden && result.length > 0) afterRule?.(rules.length, result);
    // Nobody would be told which rule took the last one.
    return result.length === 0 ? { kind: "dropped", rule: rules.length - 1 } : kept(labels, result);
  };
}

function isHidden(name: string): boolean {
  return name.startsWith("__") && name !== "__name__";
}

function kept(incoming: readonly Label[], labels: readonly Label[]): RelabelOutcome {
  return { kind: "kept", labels, changed: labels !== incoming };
}

/** What is wrong with a rule, null when nothing is. */
export function faultOf(rule: RelabelRule, dialect: RelabelDialect): RelabelFault | null {
  try {
    if (dialect === "prometheus") checkPrometheusRule(rule);
    else checkVictoriaMetricsRule(rule);
    return null;
  } catch (error) {
    if (!(error instanceof RelabelError)) throw error;
    return { field: error.field, reason: error.message };
  }
}
