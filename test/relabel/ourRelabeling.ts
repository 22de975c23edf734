/** What the `relabel` command makes of rules and label sets, in the shape in which peers are asked the same. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";

import { relabel } from "../../src/cli/relabel.ts";
import type { RelabelDialect } from "../../src/relabel/options.ts";
import type { Outcomes } from "./differences.ts";
import type { Labels } from "../../src/cli/seriesLines.ts";

export type OurAnswer =
  | { readonly kind: "refused"; readonly problem: string }
  | { readonly kind: "applied"; readonly outcomes: Outcomes };

export class OurRelabeling {
  readonly #dialect: RelabelDialect;
  readonly #rulesFile: string;
  readonly #inputFile: string;

  private constructor(dialect: RelabelDialect, folder: string) {
    this.#dialect = dialect;
    this.#rulesFile = join(folder, "rules.yaml");
    this.#inputFile = join(folder, "series.ndjson");
  }

  /** @param folder for the command's files */
  static async of(dialect: RelabelDialect, folder: string, sets: readonly Labels[]): Promise<OurRelabeling> {
    const ours = new OurRelabeling(dialect, folder);
    await writeFile(ours.#inputFile, sets.map((labels) => `${JSON.stringify({ labels })}\n`).join(""));
    return ours;
  }

  /** Applies one list to every label set. */
  async apply(rulesYaml: string): Promise<OurAnswer> {
    await writeFile(this.#rulesFile, rulesYaml);
    const lines: string[] = [];
    const problems: string[] = [];
    const exitCode = await relabel(
      undefined,
      { rules: this.#rulesFile, dialect: this.#dialect, input: this.#inputFile, json: true },
      (line) => lines.push(line),
      (line) => problems.push(line),
    );
    if (exitCode !== 0) return { kind: "refused", problem: problems.join("\n") };
    return { kind: "applied", outcomes: lines.map(parseOutcome) };
  }
}

function parseOutcome(line: string): Labels | null {
  const outcome = JSON.parse(line) as { readonly labels: Labels } | { readonly dropped: true };
  return "labels" in outcome ? outcome.labels : null;
}
