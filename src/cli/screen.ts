/**
 * A terminal with a table at its end that is drawn again in place, while lines scroll by above it. Where output goes to
 * a file or a pipe there is no table.
 */
export interface ScreenStream {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

const UP_AND_CLEAR = (lines: number): string => `\u001b[${lines}A\u001b[0J`;
const DEFAULT_COLUMNS = 80;

export class Screen {
  readonly #stream: ScreenStream;
  #table: readonly string[] = [];

  constructor(stream: ScreenStream) {
    this.#stream = stream;
  }

  /** Whether a table can be drawn again in place. */
  get redraws(): boolean {
    return this.#stream.isTTY === true;
  }

  /** Writes a line, above the table if there is one. */
  print(line: string): void {
    this.#stream.write(`${this.#eraser()}${line}\n${this.#drawing()}`);
  }

  /** Draws the table, in the place of the one before. */
  draw(table: readonly string[]): void {
    const eraser = this.#eraser();
    // A line that wraps would take two, and the next drawing would begin too low.
    const columns = this.#stream.columns ?? DEFAULT_COLUMNS;
    this.#table = table.map((line) => (line.length < columns ? line : `${line.slice(0, columns - 2)}…`));
    this.#stream.write(eraser + this.#drawing());
  }

  #eraser(): string {
    return this.#table.length === 0 ? "" : UP_AND_CLEAR(this.#table.length);
  }

  #drawing(): string {
    return this.#table.map((line) => `${line}\n`).join("");
  }
}
