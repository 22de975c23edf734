/** Durations as Prometheus writes them, and sizes. */
import { wrong, within } from "./scalars.ts";
import type { Range } from "./scalars.ts";
import type { Reader } from "./section.ts";

export const KIB = 1024;
export const MIB = 1024 * KIB;
export const GIB = 1024 * MIB;

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Timers hold 2^31 - 1 milliseconds, 24.8 days. */
const LONGEST = { max: 24 * DAY, because: "the longest time of a timer" };

/**
 * A duration, e.g. `1h30m` or `20ms`.
 *
 * @param min milliseconds
 * @returns a reader of milliseconds
 */
export function duration({ min }: { min: number }): Reader<number> {
  return (node, problems) => {
    const milliseconds = node.kind === "text" ? parseDuration(node.text) : null;
    if (milliseconds === null) return wrong(node, problems, "a duration as 1h30m, 15s or 20ms");
    return within(milliseconds, { min, ...LONGEST }, node, problems, formatDuration);
  };
}

/** A size, e.g. `32MiB`, `64KiB`, or a plain number of bytes. */
export function size(range: Range): Reader<number> {
  return (node, problems) => {
    const bytes = node.kind === "text" ? parseSize(node.text) : null;
    if (bytes === null) return wrong(node, problems, "a size as 32MiB, 64KiB or a number of bytes");
    return within(bytes, range, node, problems, formatSize);
  };
}

/** @returns milliseconds, or null when it is no duration */
export function parseDuration(written: string): number | null {
  if (written === "0") return 0;
  const match = /^(?:(\d+)y)?(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?(?:(\d+)ms)?$/.exec(
    written,
  );
  if (match === null || written === "") return null;
  const units = [365 * DAY, 7 * DAY, DAY, HOUR, MINUTE, SECOND, 1];
  return units.reduce((sum, unit, index) => sum + unit * Number(match[index + 1] ?? 0), 0);
}

/** As parseDuration reads it, from days down, e.g. `1h30m`. */
export function formatDuration(milliseconds: number): string {
  let written = "";
  let rest = milliseconds;
  for (const [unit, length] of Object.entries({ d: DAY, h: HOUR, m: MINUTE, s: SECOND, ms: 1 })) {
    const whole = Math.floor(rest / length);
    if (whole > 0) written += `${whole}${unit}`;
    rest -= whole * length;
  }
  return written === "" ? "0s" : written;
}

/** @returns bytes, or null when it is no size */
export function parseSize(written: string): number | null {
  const match = /^(\d{1,15})(KiB|MiB|GiB)?$/.exec(written);
  if (match === null) return null;
  const unit = { KiB: KIB, MiB: MIB, GiB: GIB }[match[2] ?? ""] ?? 1;
  return Number(match[1]) * unit;
}

/** In the largest unit that gives a whole number, e.g. `64KiB`. */
export function formatSize(bytes: number): string {
  for (const [unit, length] of Object.entries({ GiB: GIB, MiB: MIB, KiB: KIB })) {
    if (bytes >= length && bytes % length === 0) return `${bytes / length}${unit}`;
  }
  return `${bytes} ${bytes === 1 ? "byte" : "bytes"}`;
}
