/**
 * A list of Prometheus' relabel rules, compiled once and applied to many series.
 *
 * Labels are strings here: that is exact for valid UTF-8, and whoever applies rules has refused everything else before.
 * Where order shows, it is that of the UTF-8 bytes.
 */
import { stepOf, type Step } from "./actions.ts";
import { checkRule } from "./checkedRule.ts";
import { RelabelError } from "./errors.ts";
import type { RelabelFault, RelabelRule } from "./options.ts";
import { type Label, WorkingLabels } from "./workingLabels.ts";

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

/** Compiled rules. Frozen after their making, except for what the regex engine caches. */
export class RelabelRules {
  readonly #steps: readonly Step[];

  /** @throws {RelabelError} when faultOf() has something against one of the rules */
  constructor(rules: readonly RelabelRule[]) {
    this.#steps = rules.map((rule) => stepOf(checkRule(rule)));
  }

  /**
   * Applies the rules in their order, up to one that drops the series.
   *
   * @param labels unique names, valid Unicode; not changed
   * @param afterRule told the labels after every rule that did not drop the series, its number from 0
   */
  apply(
    labels: readonly Label[],
    afterRule?: (rule: number, labels: readonly Label[]) => void,
  ): RelabelOutcome {
    const working = new WorkingLabels(labels);
    for (const [rule, step] of this.#steps.entries()) {
      if (!step(working)) return { kind: "dropped", rule };
      afterRule?.(rule, working.result());
    }
    const kept = working.result();
    return { kind: "kept", labels: kept, changed: kept !== labels };
  }
}

/** What is wrong with a rule, null when nothing is. */
export function faultOf(rule: RelabelRule): RelabelFault | null {
  try {
    checkRule(rule);
    return null;
  } catch (error) {
    if (!(error instanceof RelabelError)) throw error;
    return { field: error.field, reason: error.message };
  }
}
