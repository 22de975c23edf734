/** Foreign text on a terminal: nothing in it may move the cursor, change colours or turn the writing direction. */

const CONTROLS = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu;

/** One line of text with control characters written out as \u001b and the like. */
export function printable(text: string): string {
  return text.replace(CONTROLS, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Text in double quotes, on one line. */
export function quoted(text: string): string {
  return printable(JSON.stringify(text));
}

/** Whole numbers with thousands separated, as people read them. */
export function grouped(count: number): string {
  return count.toLocaleString("en-US");
}
