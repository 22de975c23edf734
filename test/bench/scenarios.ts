/**
 * What is measured end to end: numbers of upstreams and connections, shares of new series, with or without rules, a spool, and
 * topology periods.
 */
import { NEW_SHARES, type NewShare } from "./corpus/corpus.ts";

export interface Scenario {
  /**
   * "n3-new10": three upstreams, ten percent of the series never seen before; "n3-new0-rules": none, and ten rules;
   * "n3-new0-spool", "n3-new0-periods": none, and the gateway beside itself without a spool, and without periods.
   */
  readonly name: string;
  readonly upstreams: number;
  readonly connections: number;
  readonly newShare: NewShare;
  /** Whether the programs have the rules of rules.yaml. */
  readonly hasRules: boolean;
  /** What the gateway is compared with besides others: itself without something; null for nothing. */
  readonly twin: "gateway without rules" | "gateway without a spool" | "gateway without periods" | null;
  /** Whether the gateway has periods before and behind the one that the load falls into. */
  readonly hasPeriods: boolean;
  /** Windows of each program, unless others are asked for. */
  readonly rounds: number;
}

const ROUNDS = 3;
/** Ratios are near the bounds that are promised for them, so their spread has to be known well. */
const ROUNDS_OF_TWINS = 7;

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
    hasPeriods: false,
    twin: null,
    rounds: ROUNDS,
  })),
);

const WITH_RULES: readonly Scenario[] = SHARES_WITH_RULES.map((newShare) => ({
  name: `n${SIZES[0].upstreams}-new${newShare}-rules`,
  ...SIZES[0],
  newShare,
  hasRules: true,
  hasPeriods: false,
  twin: newShare === 0 ? "gateway without rules" : null,
  rounds: ROUNDS_OF_TWINS,
}));

const WITH_SPOOL: Scenario = {
  name: `n${SIZES[0].upstreams}-new0-spool`,
  ...SIZES[0],
  newShare: 0,
  hasRules: false,
  hasPeriods: false,
  twin: "gateway without a spool",
  rounds: ROUNDS_OF_TWINS,
};

const WITH_PERIODS: Scenario = {
  ...WITH_SPOOL,
  name: `n${SIZES[0].upstreams}-new0-periods`,
  hasPeriods: true,
  twin: "gateway without periods",
};

export const SCENARIOS: readonly Scenario[] = [...WITHOUT_RULES, ...WITH_RULES, WITH_SPOOL, WITH_PERIODS];
