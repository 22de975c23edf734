/** Throws when something that only a bug of ours can cause has happened. */
export function invariant(condition: boolean, what: string): asserts condition {
  if (!condition) throw new Error(`bug in stream-metrics-route: ${what}`);
}
