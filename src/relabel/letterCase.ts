/**
 * Upper and lower case, one code point for one, as Go's strings.ToUpper and ToLower map them.
 *
 * JavaScript's own functions use Unicode's full mappings, which make SS of ß and know a sigma for the ends of words.
 */

const ASCII = /^[\0-\x7f]*$/;
const DOTTED_CAPITAL_I = "\u0130";

export function toUpper(text: string): string {
  return ASCII.test(text) ? text.toUpperCase() : Array.from(text, upperOf).join("");
}

export function toLower(text: string): string {
  return ASCII.test(text) ? text.toLowerCase() : Array.from(text, lowerOf).join("");
}

function upperOf(character: string): string {
  const upper = character.toUpperCase();
  return isOneCodePoint(upper) ? upper : simpleUpperOf(character);
}

/** The simple mapping of characters whose full mapping is several: themselves, but for Greek with an iota below. */
function simpleUpperOf(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  // Blocks of sixteen, the capitals in the second half of each.
  if (code >= 0x1f80 && code <= 0x1faf && (code & 8) === 0) return String.fromCodePoint(code + 8);
  if (code === 0x1fb3 || code === 0x1fc3 || code === 0x1ff3) return String.fromCodePoint(code + 9);
  return character;
}

function lowerOf(character: string): string {
  // The only one whose full mapping is several.
  return character === DOTTED_CAPITAL_I ? "i" : character.toLowerCase();
}

function isOneCodePoint(text: string): boolean {
  return text.length === 1 || (text.length === 2 && (text.codePointAt(0) ?? 0) > 0xffff);
}
