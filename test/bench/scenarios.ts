/** What is measured end to end: numbers of upstreams and connections, and shares of new series. */
import { NEW_SHARES, type NewShare } from "./corpus/corpus.ts";

export interface Scenario {
  /** "n3-new10": three upstreams, ten percent of the series never seen before. */
  readonly name: string;
  readonly upstreams: number;
  readonly connections: number;
  readonly newShare: NewShare;
}

const SIZES = [
  { upstreams: 3, connections: 8 },
  { upstreams: 100, connections: 64 },
] as const;

export const SCENARIOS: readonly Scenario[] = SIZES.flatMap(({ upstreams, connections }) =>
  NEW_SHARES.map((newShare) => ({
    name: `n${upstreams}-new${newShare}`,
    upstreams,
    connections,
    newShare,
  })),
);
