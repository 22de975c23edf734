/** A series with items of several epochs, for which different things are decided: each effect gets the items that are its own. */
import type { Effect } from "../engine/engine.ts";
import { Cursor } from "../wire/cursor.ts";
import { SeriesFields } from "../wire/items.ts";
import { withItems } from "../wire/someItems.ts";
import { spliced } from "../wire/splice.ts";
import type { Epochs } from "./epochs.ts";

export class EpochItems {
  readonly #message: Uint8Array;
  readonly #epochs: Epochs;
  /** Those that it has items of, in ascending order. */
  readonly occurring: readonly number[];

  /** @param message of the series, which was checked before; to be left as it is while this is used */
  constructor(message: Uint8Array, epochs: Epochs) {
    this.#message = message;
    this.#epochs = epochs;
    const found = new Set<number>();
    const cursor = new Cursor(message);
    const field = new SeriesFields(cursor);
    while (cursor.pos < message.length) {
      field.next();
      if (field.kind !== null) found.add(epochs.at(field.timestampMs));
    }
    this.occurring = [...found].sort((a, b) => a - b);
  }

  /** An effect on the whole series as one on its items of some epochs. */
  part(effect: Effect, epochs: ReadonlySet<number>): Effect {
    const isOwn = (timestampMs: number): boolean => epochs.has(this.#epochs.at(timestampMs));
    const whole = this.#message;
    if (effect.kind === "count") return { ...effect, items: withItems(whole, isOwn).items };
    // Splices are for the message as it came; labels may stand behind items, so they are made first.
    const { message, items } = withItems(spliced(whole, ...effect.splices), isOwn);
    return { ...effect, splices: [{ keep: 0, resume: whole.length, inserted: message }], items };
  }
}
