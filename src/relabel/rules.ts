/**
 * A list of relabel rules, compiled once and applied to many series.
 *
 * Labels are strings here: that is exact for valid UTF-8, and whoever applies rules has refused everything else before.
 * Where order shows, it is that of the UTF-8 bytes.
 *
 * A list in the dialect of VictoriaMetrics ends as every list of vmagent does: labels whose names begin with two underscores
 * are removed, but for __name__, and a series without labels is dropped. An empty list does neither.
 */
import type { Step } from "./actions.ts";
import { RelabelError } from "./errors.ts";
import type { RelabelDialect, RelabelFault, RelabelRule, RelabelRuleList } from "./options.ts";
import { prometheusStep } from "./prometheusActions.ts";
import { PrometheusLabels } from "./prometheusLabels.ts";
import { checkPrometheusRule } from "./prometheusRule.ts";
import { victoriaMetricsStep } from "./victoriaMetricsActions.ts";
import { VictoriaMetricsLabels } from "./victoriaMetricsLabels.ts";
import { checkVictoriaMetricsRule } from "./victoriaMetricsRule.ts";
import type { Label, WorkingLabels } from "./workingLabels.ts";

export type { Label } from "./workingLabels.ts";

export type RelabelOutcome =
  | {
      readonly kind: "kept";
      /** The labels that came in, when nothing changed, else sorted by name; may be none, or without a metric name. */
      readonly labels: readonly Label[];
      readonly changed: boolean;
    }
  | Ended;

/** Not all rules were run. */
type Ended =
  | {
      readonly kind: "dropped";
      /** Which rule did it, from 0. */
      readonly rule: number;
    }
  | {
      /** A rule has made a value longer than the limit. */
      readonly kind: "overlong";
      readonly rule: number;
    };

/**
 * Told the labels after every rule that did not drop the series, its number from 0; and with the number behind the last one
 * after the end of a list of VictoriaMetrics, if that removed some.
 */
export type AfterRule = (rule: number, labels: readonly Label[]) => void;

/** What a list is applied under. */
export interface ApplyLimits {
  /** Characters of a value, also of one that a later rule would remove: seven rules can make gigabytes of a kilobyte. */
  readonly maxValueLength: number;
  /** Whether to pause, asked after every rule: a thousand of them take milliseconds, and more on long values. */
  readonly isDue: () => boolean;
}

/** The labels after rules; yields when it is due to pause. */
type Applying = Generator<undefined, RelabelOutcome, undefined>;
type Apply = (labels: readonly Label[], limits: ApplyLimits, afterRule?: AfterRule) => Applying;

const WITHOUT_PAUSE: ApplyLimits = { maxValueLength: 2 ** 24, isDue: () => false };

/** Compiled rules. Frozen after their making, except for what the regex engine and its memos keep. */
export class RelabelRules {
  readonly #apply: Apply;

  /** @throws {RelabelError} when faultOf() has something against one of the rules */
  constructor({ dialect, rules }: RelabelRuleList) {
    this.#apply = dialect === "prometheus" ? prometheusRules(rules) : victoriaMetricsRules(rules);
  }

  /**
   * Applies the rules in their order, up to one that drops the series, with pauses in between.
   *
   * @param labels unique names, valid Unicode; not changed
   */
  applyInSteps(labels: readonly Label[], limits: ApplyLimits, afterRule?: AfterRule): Applying {
    return this.#apply(labels, limits, afterRule);
  }

  /** applyInSteps() in one go, for values of any reasonable length. */
  apply(labels: readonly Label[], afterRule?: AfterRule): RelabelOutcome {
    const steps = this.#apply(labels, WITHOUT_PAUSE, afterRule);
    for (;;) {
      const step = steps.next();
      if (step.done === true) return step.value;
    }
  }
}

function prometheusRules(rules: readonly RelabelRule[]): Apply {
  const steps = rules.map((rule) => prometheusStep(checkPrometheusRule(rule)));
  return function* (labels, limits, afterRule) {
    const working = new PrometheusLabels(labels);
    const ended = yield* takeSteps(steps, working, limits, afterRule);
    return ended ?? kept(labels, working.result());
  };
}

function victoriaMetricsRules(rules: readonly RelabelRule[]): Apply {
  const steps = rules.map((rule) => victoriaMetricsStep(checkVictoriaMetricsRule(rule)));
  return function* (labels, limits, afterRule) {
    if (rules.length === 0) return kept(labels, labels);
    const working = new VictoriaMetricsLabels(labels);
    const ended = yield* takeSteps(steps, working, limits, afterRule);
    if (ended !== null) return ended;
    const hasHidden = working.removeWhere(isHidden);
    const result = working.result();
    if (hasHidden && result.length > 0) afterRule?.(rules.length, result);
    // Nobody would be told which rule took the last one.
    return result.length === 0 ? { kind: "dropped", rule: rules.length - 1 } : kept(labels, result);
  };
}

function* takeSteps<Labels extends WorkingLabels>(
  steps: readonly Step<Labels>[],
  working: Labels,
  limits: ApplyLimits,
  afterRule: AfterRule | undefined,
): Generator<undefined, Ended | null, undefined> {
  for (let rule = 0; rule < steps.length; rule++) {
    if (steps[rule]?.(working) === false) return { kind: "dropped", rule };
    if (working.longestSet > limits.maxValueLength) return { kind: "overlong", rule };
    afterRule?.(rule, working.result());
    if (limits.isDue()) yield;
  }
  return null;
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
    return { field: error.field, reason: error.message, isForeign: error.code === "RELABEL_FOREIGN" };
  }
}
