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

const WITHOUT_PAUSE: ApplyLimits = { maxValueLength: 2 ** 24, isDue: () => false };

/** Compiled rules. Frozen after their making, except for what is remembered of texts: by the regex engine, and by rules. */
export class RelabelRules {
  readonly #begin: Begin;

  /** @throws {RelabelError} when faultOf() has something against one of the rules */
  constructor({ dialect, rules }: RelabelRuleList) {
    this.#begin = dialect === "prometheus" ? prometheusRules(rules) : victoriaMetricsRules(rules);
  }

  /**
   * Begins to apply the rules in their order, up to one that drops the series.
   *
   * @param labels unique names, valid Unicode; not changed
   */
  begin(labels: readonly Label[], limits: ApplyLimits, afterRule?: AfterRule): Applying {
    return this.#begin(labels, limits, afterRule);
  }

  /** All rules in one go, for values of any reasonable length. */
  apply(labels: readonly Label[], afterRule?: AfterRule): RelabelOutcome {
    const applying = this.#begin(labels, WITHOUT_PAUSE, afterRule);
    for (;;) {
      const outcome = applying.goOn();
      if (outcome !== null) return outcome;
    }
  }
}

/** Rules on their way through the labels of one series. */
export interface Applying {
  /** Applies what is left of the rules; null when it is due to pause before that is done. */
  goOn(): RelabelOutcome | null;
}

type Begin = (labels: readonly Label[], limits: ApplyLimits, afterRule?: AfterRule) => Applying;

function prometheusRules(rules: readonly RelabelRule[]): Begin {
  const steps = rules.map((rule) => prometheusStep(checkPrometheusRule(rule)));
  return (labels, limits, afterRule) => {
    const working = new PrometheusLabels(labels);
    return new Steps(steps, working, limits, afterRule, () => kept(labels, working.result()));
  };
}

function victoriaMetricsRules(rules: readonly RelabelRule[]): Begin {
  const steps = rules.map((rule) => victoriaMetricsStep(checkVictoriaMetricsRule(rule)));
  return (labels, limits, afterRule) => {
    const working = new VictoriaMetricsLabels(labels);
    return new Steps(steps, working, limits, afterRule, () => {
      if (rules.length === 0) return kept(labels, labels);
      const hasHidden = working.removeWhere(isHidden);
      const result = working.result();
      if (hasHidden && result.length > 0) afterRule?.(rules.length, result);
      // Nobody would be told which rule took the last one.
      return result.length === 0 ? { kind: "dropped", rule: rules.length - 1 } : kept(labels, result);
    });
  };
}

/** No generator: most lists are done in one go, and making one costs as much as some rules. */
class Steps<Labels extends WorkingLabels> implements Applying {
  readonly #steps: readonly Step<Labels>[];
  readonly #working: Labels;
  readonly #limits: ApplyLimits;
  readonly #afterRule: AfterRule | undefined;
  readonly #finish: () => RelabelOutcome;
  /** The next rule. */
  #next = 0;

  constructor(
    steps: readonly Step<Labels>[],
    working: Labels,
    limits: ApplyLimits,
    afterRule: AfterRule | undefined,
    finish: () => RelabelOutcome,
  ) {
    this.#steps = steps;
    this.#working = working;
    this.#limits = limits;
    this.#afterRule = afterRule;
    this.#finish = finish;
  }

  goOn(): RelabelOutcome | null {
    const working = this.#working;
    while (this.#next < this.#steps.length) {
      const rule = this.#next;
      this.#next += 1;
      if (this.#steps[rule]?.(working) === false) return { kind: "dropped", rule };
      if (working.longestSet > this.#limits.maxValueLength) return { kind: "overlong", rule };
      this.#afterRule?.(rule, working.result());
      if (this.#limits.isDue()) return null;
    }
    return this.#finish();
  }
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
