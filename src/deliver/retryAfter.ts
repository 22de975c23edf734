/** What an upstream asks for in the Retry-After header. */

/** Nobody means to be left alone for longer than this: a larger value is a mistake and says nothing. */
const ABSURD_MS = 24 * 60 * 60 * 1000;

const SECONDS = /^[0-9]+$/;
/** The one HTTP date that RFC 9110 lets anyone generate. Date.parse alone would read "-1" and "1.5" as dates too. */
const IMF_FIXDATE = /^[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT$/;

/**
 * Reads a Retry-After header: whole seconds, or an HTTP date.
 *
 * @param value the header, null if there was none
 * @param nowMs milliseconds since the epoch
 * @returns the wait in milliseconds; null if there is none, or it is negative, past, absurd or unreadable
 * @see RFC 9110, 10.2.3 and 5.6.7
 */
export function parseRetryAfter(value: string | null, nowMs: number): number | null {
  if (value === null) return null;
  const text = value.trim();
  if (SECONDS.test(text)) {
    const waitMs = Number(text) * 1000;
    return waitMs <= ABSURD_MS ? waitMs : null;
  }
  if (!IMF_FIXDATE.test(text)) return null;
  const waitMs = Date.parse(text) - nowMs;
  return waitMs > 0 && waitMs <= ABSURD_MS ? waitMs : null;
}
