/** Scans series and metadata where they are in the engine's memory. */
import type { Row } from "../engine/engine.ts";
import { Cursor } from "../wire/cursor.ts";
import { scanSeries, SeriesScan } from "../wire/scan.ts";
import { checkMessage, METADATA_SHAPE } from "../wire/shapes.ts";

export class MemoryScan {
  readonly bytes: Uint8Array;
  readonly #cursor: Cursor;
  readonly #series: SeriesScan;

  constructor(bytes: Uint8Array, maxLabels: number) {
    this.bytes = bytes;
    this.#cursor = new Cursor(bytes);
    this.#series = new SeriesScan(bytes, maxLabels);
  }

  /**
   * The series of a row. Valid until the next call.
   *
   * @throws {WireError} when it is not well-formed
   */
  series({ start, labelsEnd }: Row): SeriesScan {
    this.#cursor.pos = start;
    scanSeries(this.#cursor, labelsEnd, this.#series);
    return this.#series;
  }

  /**
   * Whether all strings of a metadata entry are UTF-8.
   *
   * @throws {WireError} when it is not well-formed
   */
  metadata(start: number, end: number): boolean {
    this.#cursor.pos = start;
    this.#cursor.readTag();
    return checkMessage(this.#cursor, this.#cursor.readEnd(), METADATA_SHAPE) && this.#cursor.pos === end;
  }
}
