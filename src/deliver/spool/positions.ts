/**
 * How far segments were released, for the next start: what is before was delivered, and is not sent again.
 *
 * The file is a hint. It is replaced at most once a second and not synced; lost or damaged, it costs resending.
 * A line is a file name and a number of bytes; the last line is a checksum of those before.
 */
import { crc32c } from "./crc32c.ts";

export const POSITIONS_FILE = "positions";

export interface Position {
  readonly fileName: string;
  readonly releasedTo: number;
}

export function formatPositions(positions: readonly Position[]): Buffer {
  const lines = positions.map(({ fileName, releasedTo }) => `${fileName} ${releasedTo}\n`).join("");
  return Buffer.from(`${lines}crc32c ${crc32c(Buffer.from(lines))}\n`);
}

/** @returns bytes by file name; none if the file is not whole */
export function parsePositions(file: Buffer): ReadonlyMap<string, number> {
  const lines = file.toString("utf8").split("\n");
  const [, sum] = lines.splice(-2)[0]?.split(" ") ?? [];
  const positions = lines.map((line) => `${line}\n`).join("");
  if (sum !== String(crc32c(Buffer.from(positions)))) return new Map();
  return new Map(
    lines.map((line) => {
      const [fileName = "", releasedTo] = line.split(" ");
      return [fileName, Number(releasedTo)];
    }),
  );
}
