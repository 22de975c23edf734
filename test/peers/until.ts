/** Waiting for what other processes do: by looking, up to a deadline, never by a pause that is hoped to be long enough. */
import { setTimeout as pause } from "node:timers/promises";

const LOOK_EVERY_MS = 50;

/**
 * Looks again and again until `probe` finds something, and returns that. A probe that throws has found nothing yet: the
 * process it asks may still be starting.
 *
 * @param what       what is waited for, for the message: "the exporter to be scraped ten times"
 * @param deadlineMs how long to look
 * @param probe      answers undefined or false for "not yet"
 * @throws {Error} at the deadline, naming `what` and the probe's last error
 */
export async function until<T>(
  what: string,
  deadlineMs: number,
  probe: () => Promise<T | undefined | false> | T | undefined | false,
): Promise<T> {
  const deadline = Date.now() + deadlineMs;
  for (;;) {
    let lastError: unknown;
    try {
      const found = await probe();
      if (found !== undefined && found !== false) return found;
    } catch (error) {
      if (error instanceof GaveUp) throw error;
      lastError = error;
    }
    if (Date.now() >= deadline) {
      const options = lastError === undefined ? {} : { cause: lastError };
      throw new Error(`waited ${deadlineMs} ms in vain for ${what}`, options);
    }
    await pause(LOOK_EVERY_MS);
  }
}

/**
 * Waits until a probe finds the same count twice in a row. A program's counters are not read all at one moment, so one
 * look can find one of before and one of after that match. The second look reads all of them after what the first counted
 * had happened.
 *
 * @param probe answers a count of what is done, or undefined while something is under way; what it reads must be new each time
 * @throws {Error} as until()
 */
export async function untilSettled(
  what: string,
  deadlineMs: number,
  probe: () => Promise<number | undefined>,
): Promise<void> {
  let last: number | undefined;
  await until(what, deadlineMs, async () => {
    const found = await probe();
    const settled = found !== undefined && found === last;
    last = found;
    return settled;
  });
}

/** Thrown by a probe when further looking is useless, e.g. because the process has ended. */
export class GaveUp extends Error {
  override readonly name = "GaveUp";
}
