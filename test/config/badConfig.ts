/** Rows of configurations with errors, and what is asked of each of them. */
import { expect, it } from "vitest";
import { parseConfig } from "../../src/config/load.ts";
import { formatProblem } from "../../src/config/problem.ts";
import { placementFault } from "../../src/hash/placementFault.ts";
import { faultOf } from "../../src/relabel/rules.ts";

export interface BadConfig {
  readonly name: string;
  readonly yaml: string;
  /** All problems, without the file's name. */
  readonly problems: readonly string[];
}

/** A route in lines 1 to 3, valid but for what stands in line 4 and after. */
export function inRoute(...lines: string[]): string {
  const upstream = "{name: a, url: http://a/w}";
  return [
    "routes:",
    "  - name: r",
    `    upstreams: [${upstream}]`,
    ...lines.map((line) => `    ${line}`),
  ].join("\n");
}

/** Declares the tests of a table. */
export function itTellsAll(table: readonly BadConfig[]): void {
  it.each(table)("tells all of them: $name", ({ yaml, problems }) => {
    const loaded = parseConfig(yaml, "f.yaml", {
      legacyHash: "jump",
      checkRule: faultOf,
      checkPlacement: placementFault,
    });
    expect(loaded.problems.map(formatProblem)).toEqual(problems.map((problem) => `f.yaml:${problem}`));
    expect(loaded.config).toBeNull();
  });

  it.each(table)("shows no secret: $name", ({ yaml }) => {
    const loaded = parseConfig(yaml, "f.yaml", {
      legacyHash: "jump",
      checkRule: faultOf,
      checkPlacement: placementFault,
    });
    expect(loaded.problems.map(formatProblem).join("\n")).not.toMatch(/hunter|hüter/);
  });
}
