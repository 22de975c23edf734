/** Resolves with the first signal that asks this process to end: SIGTERM, SIGINT (Ctrl-C) or SIGHUP (terminal closed). */
export function waitForSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.once(signal, resolve);
  });
}
