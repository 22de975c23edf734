/** Reads our Dockerfile: comments, lines that go on, and the exec form; no heredocs, variables or parser directives. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";

export const REPOSITORY = resolve(import.meta.dirname, "../..");

export interface Instruction {
  /** FROM, COPY, ... */
  readonly name: string;
  readonly text: string;
}

export interface Stage {
  /** The image it begins with. */
  readonly base: string;
  /** As other stages call it; undefined without AS. */
  readonly name: string | undefined;
  /** Those after FROM, in order. */
  readonly instructions: readonly Instruction[];
}

/** What a COPY takes and where it puts it. */
export interface Copy {
  /** The stage that it takes from; undefined for the folder that is built. */
  readonly from: string | undefined;
  readonly sources: readonly string[];
  readonly destination: string;
}

export function readStages(): Stage[] {
  const stages: { base: string; name: string | undefined; instructions: Instruction[] }[] = [];
  for (const instruction of readInstructions()) {
    if (instruction.name === "FROM") {
      const [base = "", , name] = instruction.text.split(" ");
      stages.push({ base, name, instructions: [] });
      continue;
    }
    const stage = stages.at(-1);
    if (stage === undefined) throw new Error(`want FROM first; got ${instruction.name}`);
    stage.instructions.push(instruction);
  }
  return stages;
}

function readInstructions(): Instruction[] {
  const lines = readFileSync(resolve(REPOSITORY, "Dockerfile"), "utf8")
    .split("\n")
    .filter((line) => line.trim() !== "" && !line.startsWith("#"));
  return lines
    .join("\n")
    .replaceAll(/\\\n\s*/g, "")
    .split("\n")
    .map((line) => {
      const [, name, text] = /^([A-Z]+) +(.+)$/.exec(line) ?? [];
      if (name === undefined || text === undefined) throw new Error(`cannot read this instruction: ${line}`);
      return { name, text };
    });
}

/** The texts of all instructions of that name, in order. */
export function textsOf(stage: Stage, name: string): string[] {
  return stage.instructions.filter((instruction) => instruction.name === name).map(({ text }) => text);
}

/** The text of the instruction of that name that is in force at the end of the stage. */
export function lastOf(stage: Stage, name: string): string {
  const text = textsOf(stage, name).at(-1);
  if (text === undefined) throw new Error(`the stage from ${stage.base} has no ${name}`);
  return text;
}

/** The words of an ENTRYPOINT or CMD in exec form. */
export function execForm(text: string): string[] {
  const words: unknown = JSON.parse(text);
  if (!Array.isArray(words)) throw new Error(`want the exec form, ["node", ...]; got ${text}`);
  return words.map(String);
}

export function copiesOf(stage: Stage): Copy[] {
  return textsOf(stage, "COPY").map((text) => {
    const words = text.split(" ");
    const from = words[0]?.startsWith("--from=") ? words.shift()?.slice("--from=".length) : undefined;
    const destination = words.pop() ?? "";
    return { from, sources: words, destination };
  });
}
