/** Numbers of 64 bits that the programs in C keep in a file, which is shared memory to them. */
import { readFileSync } from "node:fs";

/**
 * Reads rows of counters.
 *
 * @param names names of a row's numbers, in their order
 */
export function readCounters<Name extends string>(
  file: string,
  names: readonly Name[],
): Record<Name, number>[] {
  const bytes = readFileSync(file);
  const rowBytes = names.length * 8;
  return Array.from({ length: bytes.length / rowBytes }, (_, row) => {
    const numbers = names.map((name, index) => [
      name,
      Number(bytes.readBigUInt64LE(row * rowBytes + index * 8)),
    ]);
    return Object.fromEntries(numbers) as Record<Name, number>;
  });
}
