/** Text from elsewhere, made fit for a log line and for an answer to a sender. */

/** Controls, line ends, and the invisible characters that change how a line is shown. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu;

/**
 * Puts text on one line: every run of blanks and control characters becomes one blank, and what is longer is cut.
 *
 * @param maxBytes of the result in UTF-8; no character is cut in half
 */
export function cleanText(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text.replace(UNPRINTABLE, " ").trim());
  if (bytes.length <= maxBytes) return bytes.toString();
  let end = maxBytes;
  while (end > 0 && isContinuation(bytes[end])) end -= 1;
  return bytes.toString("utf8", 0, end).trimEnd();
}

/** Whether a byte is inside a UTF-8 character, not its start. */
function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}

/** A length of time for a person: `30 ms`, `8.0 s`. */
export function formatMs(ms: number): string {
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}
