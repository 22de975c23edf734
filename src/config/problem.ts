/** What is wrong, or doubtful, in a configuration file, and where. */

/** A place in a configuration file. */
export interface Place {
  /** From 1. */
  readonly line: number;
  /** From 1, in UTF-16 units as editors count them. */
  readonly column: number;
  /** Keys from the top, as `routes[0].tasks.count`; empty for the file itself. */
  readonly path: string;
}

export interface Problem extends Place {
  /** An error keeps the file from being used; a warning says what was assumed or ignored. */
  readonly severity: "error" | "warning";
  readonly file: string;
  /** What was wanted and got. Never holds a secret. */
  readonly message: string;
}

/** One line for a person, e.g. `config/eu.yaml:41:16: routes[0].tasks.count: want at least 1; got 0`. */
export function formatProblem(problem: Problem): string {
  const severity = problem.severity === "warning" ? "warning: " : "";
  const path = problem.path === "" ? "" : `${problem.path}: `;
  return `${problem.file}:${problem.line}:${problem.column}: ${severity}${path}${problem.message}`;
}

/** Nobody reads more, and a file that is something else altogether has one for each of its lines. */
const MAX_PROBLEMS = 1_000;

/** Gathers the problems of one file while it is read, so that all are told at once and not only the first. */
export class ProblemList {
  readonly #file: string;
  readonly #problems = new Map<string, Problem>();
  #hasErrors = false;
  #leftOut = 0;

  constructor(file: string) {
    this.#file = file;
  }

  error(place: Place, message: string): void {
    this.#add("error", place, message);
  }

  warning(place: Place, message: string): void {
    this.#add("warning", place, message);
  }

  get hasErrors(): boolean {
    return this.#hasErrors;
  }

  /** The problems in the order of the file; behind the first 1,000 that were found it is said how many more there are. */
  inOrder(): readonly Problem[] {
    const problems = [...this.#problems.values()].sort((a, b) => a.line - b.line || a.column - b.column);
    const last = problems.at(-1);
    if (last === undefined || this.#leftOut === 0) return problems;
    const severity = this.#hasErrors ? "error" : "warning";
    const message = `and ${this.#leftOut} more problems that are not told, here or elsewhere`;
    return [...problems, { ...last, severity, path: "", message }];
  }

  #add(severity: Problem["severity"], { line, column, path }: Place, message: string): void {
    this.#hasErrors ||= severity === "error";
    if (this.#problems.size >= MAX_PROBLEMS) {
      this.#leftOut += 1;
      return;
    }
    const problem: Problem = { severity, file: this.#file, line, column, path, message };
    this.#problems.set(formatProblem(problem), problem);
  }
}
