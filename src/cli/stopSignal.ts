/** Being asked to end. */

/** npm passes on the Ctrl-C that the terminal has given to every process already: signals this close are one request. */
const SAME_REQUEST_MS = 500;

let lastRequestAt = Number.NEGATIVE_INFINITY;

/**
 * Resolves with the next signal that asks this process to end.
 *
 * The listeners stay: a signal that nobody listens for would end the process at once, in the middle of its ending.
 */
export function waitForSignal(...signals: readonly NodeJS.Signals[]): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let isWaiting = true;
    for (const signal of signals) {
      process.on(signal, () => {
        const at = performance.now();
        if (!isWaiting || at - lastRequestAt < SAME_REQUEST_MS) return;
        isWaiting = false;
        lastRequestAt = at;
        resolve(signal);
      });
    }
  });
}
