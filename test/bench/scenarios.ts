/** What is measured end to end: numbers of upstreams and connections, shares of new series, and with rules or without. */
import { NEW_SHARES, type NewShare } from "./corpus/corpus.ts";

export interface Scenario {
  /** "n3-new10": three upstreams, ten percent of the series never seen before; "n3-new0-rules": none, and ten rules. */
  readonly name: string;
  readonly upstreams: number;
  readonly connections: number;
  readonly newShare: NewShare;
  /** Whether the programs have the rules of rules.yaml. */
  readonly hasRules: boolean;
  /** Windows of each program, unless others are asked for. */
  readonly rounds: number;
}

const ROUNDS = 3;
/** Ratios are near the bounds that are promised for them, so their spread has to be known well. */
const ROUNDS_WITH_RULES = 7;

const SIZES = [
  { upstreams: 3, connections: 8 },
  { upstreams: 100, connections: 64 },
] as const;
const SHARES_WITH_RULES: readonly NewShare[] = [0, 100];

const WITHOUT_RULES: readonly Scenario[] = SIZES.flatMap((size) =>
  NEW_SHARES.map((newShare) => ({
    name: `n${size.upstreams}-new${newShare}`,
    ...size,
    newShare,
    hasRules: false,
    rounds: ROUNDS,
  })),
);

const WITH_RULES: readonly Scenario[] = SHARES_WITH_RULES.map((newShare) => ({
  name: `n${SIZES[0].upstreams}-new${newShare}-rules`,
  ...SIZES[0],
  newShare,
  hasRules: true,
  rounds: ROUNDS_WITH_RULES,
}));

export const SCENARIOS: readonly Scenario[] = [...WITHOUT_RULES, ...WITH_RULES];
