/** Milliseconds since the epoch that go on evenly: a clock that is set must not move deadlines. */
export const now = (): number => performance.timeOrigin + performance.now();
