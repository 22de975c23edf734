/** The log: one JSON line each, on standard error. */
import { type Logger, pino } from "pino";

/**
 * Levels: warn, it recovered and nothing is lost; error, data is lost or somebody must act; debug, lines per request.
 *
 * Lines are written at once: what a process said before it ended must be there.
 */
export function createLog(level: string): Logger {
  return pino(
    {
      level,
      base: null,
      formatters: { level: (label) => ({ level: label }) },
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
    },
    pino.destination({ dest: 2, sync: true }),
  );
}
