/** What `lint` says of one rule behind one route. */
import type { AggregationRule } from "../config/aggregationFile.ts";
import type { Arrival } from "../lint/journeys.ts";
import type { Judgement, Verdict } from "../lint/judgement.ts";
import type { Witness } from "../lint/witness.ts";
import { labelText } from "../route/labelText.ts";
import { printable } from "./printable.ts";
import type { Labels } from "./seriesLines.ts";

export interface RuleJudgement {
  readonly route: string;
  /** The file of the rule, as it was given. */
  readonly file: string;
  /** Of the rule, from 1. */
  readonly number: number;
  readonly rule: AggregationRule;
  readonly judgement: Judgement;
}

/** A judgement as `--json` prints it. What is empty is left out but for `labels`. */
export interface ShownJudgement {
  readonly route: string;
  readonly rule: number;
  readonly name?: string;
  readonly line: number;
  readonly verdict: Verdict;
  readonly reason: string;
  readonly labels: readonly string[];
  readonly proof?: ShownProof;
  readonly write_instead?: readonly string[];
  readonly notes?: readonly string[];
}

/** Two series, or one twice, that prove it. */
export interface ShownProof {
  readonly group: Labels;
  readonly series: readonly { readonly labels: Labels; readonly upstream: string; readonly task?: string }[];
}

export function shownJudgement({ route, number, rule, judgement }: RuleJudgement): ShownJudgement {
  const { verdict, reason, labels, witness, remedies, notes } = judgement;
  return {
    route,
    rule: number,
    ...(rule.name === null ? {} : { name: rule.name }),
    line: rule.line,
    verdict,
    reason,
    labels,
    ...(witness === null ? {} : { proof: shownProof(witness) }),
    ...(remedies.length === 0 ? {} : { write_instead: remedies }),
    ...(notes.length === 0 ? {} : { notes }),
  };
}

function shownProof({ series, arrivals }: Witness): ShownProof {
  return {
    group: groupOf(arrivals),
    series: series.map((labels, index) => {
      const { upstream = "", task = null } = arrivals[index] ?? {};
      return { labels, upstream, ...(task === null ? {} : { task }) };
    }),
  };
}

/** A block for a person: the verdict, why, and what to write instead. */
export function judgementLines(given: RuleJudgement): string[] {
  const { verdict, reason, witness, remedies, notes } = given.judgement;
  const instead = remedies.map((remedy, index) => `${index === 0 ? "write" : "or"}: ${remedy}`);
  const lines = [
    reason,
    ...(witness === null ? [] : [`proof: ${proofText(witness)}`]),
    ...instead,
    ...notes.map((note) => `note: ${note}`),
  ];
  return [`${titleOf(given)}: ${verdict}`, ...lines.map((line) => `  ${line}`)].map(printable);
}

function titleOf({ route, file, number, rule }: RuleJudgement): string {
  const { name, line, by, without, outputs } = rule;
  const grouping =
    by.length > 0 ? [`by ${by.join(", ")}`] : without.length > 0 ? [`without ${without.join(", ")}`] : [];
  const parts = [name, `${file}:${line}`, ...grouping, outputs.join(", ")].filter((part) => part !== null);
  return `route ${route}, rule ${number} (${parts.join("; ")})`;
}

function proofText({ series: [one, other], arrivals }: Witness): string {
  const [first, second] = arrivals;
  const group = labelText(groupOf(arrivals));
  if (one === other) {
    const where =
      first.vmagent.id === second.vmagent.id
        ? `twice by ${first.upstream}`
        : `by ${first.upstream} and by ${second.upstream}`;
    return `${labelText(one)} is aggregated ${where}`;
  }
  return `${labelText(one)} goes to ${placeText(first)}, ${labelText(other)} to ${placeText(second)}; both are of ${group}`;
}

function placeText({ upstream, task }: Arrival): string {
  return task === null ? upstream : `${upstream} as task ${task}`;
}

/** Labels that the two have in common as a group; without the task where each has its own. */
function groupOf([one, other]: Witness["arrivals"]): Labels {
  return JSON.parse(one.group === other.group ? one.group : one.groupWithoutTask) as Labels;
}
