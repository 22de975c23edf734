/** Moments in time as RFC 3339 writes them. */

export const WANT_MOMENT = "a time as 2026-12-01T00:00:00Z or 2026-12-01T01:00:00.500+01:00";

const RFC_3339 =
  /^(\d{4}-\d\d-\d\d)[Tt]((?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,3})?)([Zz]|[-+](?:[01]\d|2[0-3]):[0-5]\d)$/;

/**
 * Date, time and zone are wanted, and up to three digits of a second's fraction; a leap second is none, since timestamps know
 * none.
 *
 * @returns milliseconds since the epoch, or null when it is no moment
 */
export function parseMoment(written: string): number | null {
  const [, date = "", time = "", zone = ""] = RFC_3339.exec(written) ?? [];
  const midnight = Date.parse(`${date}T00:00:00Z`);
  // The 30th of February is the 1st of March to some.
  if (Number.isNaN(midnight) || !new Date(midnight).toISOString().startsWith(date)) return null;
  return Date.parse(`${date}T${time}${zone.toUpperCase()}`);
}

/** As parseMoment() reads it, in UTC, e.g. `2026-12-01T00:00:00Z`. */
export function formatMoment(milliseconds: number): string {
  return new Date(milliseconds).toISOString().replace(/\.000Z$/, "Z");
}
