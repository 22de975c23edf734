/**
 * Remembers the text that was asked for last, and what the answer was.
 *
 * Series of one target come one behind another and share most of their values. So a rule mostly looks at the text that it
 * looked at for the series before, mostly the same string even, and comparing costs a fraction of any other way to an answer.
 */

/** A long text costs memory for every rule that remembers one, and rarely comes again. */
export const LONGEST_REMEMBERED = 256;

/** @param ask a pure function; null is an answer like any other */
export function rememberLast<Answer>(ask: (text: string) => Answer): (text: string) => Answer {
  let lastText: string | null = null;
  let lastAnswer: Answer | null = null;
  return (text) => {
    if (text === lastText) return lastAnswer as Answer;
    const answer = ask(text);
    if (text.length <= LONGEST_REMEMBERED) {
      lastText = text;
      lastAnswer = answer;
    }
    return answer;
  };
}
