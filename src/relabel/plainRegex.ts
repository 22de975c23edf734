/**
 * Patterns that JavaScript's own engine reads as RE2 does, as one of its RegExps: single characters and classes, each repeated
 * or not, and groups and alternatives that are not repeated.
 *
 * It finds the groups of a short text some ten times faster than the RE2 engine, but it backtracks. What bounds that are the
 * number of repetitions and alternatives here, and the length of the texts it is given. A test holds it to the engine.
 */

/** Longer texts go to the engine that is linear: two repetitions can make the square of this many steps. */
export const MAX_PLAIN_LENGTH = 256;
/** JavaScript's engine refuses some long patterns, and only once they are asked. */
const MAX_PATTERN_LENGTH = 1000;
const MAX_REPETITIONS = 2;
const MAX_CHOICES = 2;

const TOKEN = new RegExp(
  [
    String.raw`(?<open>\((?:\?:|\?P?<\w+>|(?!\?)))`,
    String.raw`(?<close>\))(?![*+?{])`,
    String.raw`(?<choice>\|)`,
    String.raw`(?<atom>\.|\\[dwDW.*+?()|[\]{}^$\\]|\[\^?(?:[a-z]-[a-z]|[A-Z]-[A-Z]|[0-9]-[0-9]|[\w:./@ ,;=]|\\[dw])+\]|` +
      String.raw`[^\\.+*?()|[\]{}^$])(?<repeat>[*+?]\??)?(?![*+?{])`,
  ].join("|"),
  "uy",
);

/**
 * @param regex one that RE2 takes
 * @param dot what a dot stands for, as a class
 * @returns a RegExp that matches whole texts, or null when the pattern is more than plain
 */
export function plainRegex(regex: string, dot: string): RegExp | null {
  if (regex.length > MAX_PATTERN_LENGTH) return null;
  let translated = "";
  let depth = 0;
  let repetitions = 0;
  let choices = 0;
  for (TOKEN.lastIndex = 0; TOKEN.lastIndex < regex.length;) {
    const { open, close, choice, atom = "", repeat = "" } = TOKEN.exec(regex)?.groups ?? {};
    if ([open, close, choice].every((part) => part === undefined) && atom === "") return null;
    if (open !== undefined) {
      depth += 1;
      translated += open === "(?:" ? open : "(";
    } else if (close !== undefined) {
      depth -= 1;
      // The frame around a pattern is not its own.
      if (depth < 0) return null;
      translated += close;
    } else {
      if (choice !== undefined || repeat.startsWith("?")) choices += 1;
      else if (repeat !== "") repetitions += 1;
      translated += choice ?? (atom === "." ? dot : atom) + repeat;
    }
  }
  if (repetitions > MAX_REPETITIONS || choices > MAX_CHOICES) return null;
  return new RegExp(`^(?:${translated})$`, "u");
}
