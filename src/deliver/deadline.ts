/** Waiting that ends in time. */

/** setTimeout takes no more, and fires at once if it gets more. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/**
 * Waits for a promise no longer than `waitMs`. The timer does not outlive the wait.
 *
 * @returns what `running` resolves to, or null if that takes longer; `running` goes on then
 */
export async function within<T extends object>(running: Promise<T>, waitMs: number): Promise<T | null> {
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<null>((resolve) => {
    timer = setTimeout(resolve, Math.min(Math.max(0, waitMs), LONGEST_TIMER_MS), null);
  });
  try {
    return await Promise.race([running, tooLate]);
  } finally {
    clearTimeout(timer);
  }
}
