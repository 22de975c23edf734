/**
 * What memos may hold together.
 *
 * One memo alone may reach megabytes, and there is one for every pattern of every list of rules. So all of them draw on one
 * budget; when it is spent, all are emptied and it begins anew. A memo that nobody asks any longer is emptied as well then,
 * so what is held never exceeds the budget, whatever the number of patterns. It is filled again within some thousand series.
 */

/** An empty table that got its first entry. */
const TABLE_BYTES = 512;

/** What holds answers, to be emptied. */
export type Answers = Pick<Map<string, unknown>, "clear">;

export class MemoBudget {
  readonly #maxBytes: number;
  /** Since it began anew; what a memo itself gave up meanwhile is not given back. */
  #spentBytes = 0;
  /** The tables alone: a pattern that a reload has replaced is not kept by its answers. */
  readonly #filled = new Set<Answers>();

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** To be called before an entry of this size is put into the table. */
  spend(bytes: number, answers: Answers): void {
    if (this.#spentBytes + bytes + TABLE_BYTES > this.#maxBytes) this.#beginAnew();
    this.#spentBytes += this.#filled.has(answers) ? bytes : bytes + TABLE_BYTES;
    this.#filled.add(answers);
  }

  #beginAnew(): void {
    for (const answers of this.#filled) answers.clear();
    this.#filled.clear();
    this.#spentBytes = 0;
  }
}
