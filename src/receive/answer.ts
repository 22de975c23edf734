/** The answer to a write request, from what became of its parts. */

/**
 * Remote write's answers: 204 all accepted; 400 some of it never will be; 415 another message than 1.0; 503 come again
 * with all of it.
 */
export interface WriteAnswer {
  readonly status: 204 | 400 | 415 | 503;
  /** Text for the sender's log, empty with 204. */
  readonly body: string;
  readonly retryAfterSeconds?: number;
}

/** What is to be told of a request whose parts have all come to an end, or have run out of time. */
export interface WriteReport {
  readonly series: number;
  readonly refusedSeries: number;
  readonly refusedExamples: readonly { readonly reason: string; readonly series: string }[];
  readonly undelivered: readonly {
    readonly upstream: string;
    readonly cause: string;
    readonly retryAfterMs: number;
  }[];
  readonly refusals: readonly {
    readonly upstream: string;
    readonly status: number;
    readonly reply: string;
  }[];
}

/** Prometheus logs no more than this of an answer. */
const MAX_BODY_CHARACTERS = 1024;
const MIN_RETRY_AFTER_SECONDS = 1;
/** A sender that waits holds back its data for the healthy upstreams too. */
const MAX_RETRY_AFTER_SECONDS = 5;

/**
 * Composes the answer. What can still be delivered comes first: a 400 would make the sender drop it with the rest.
 *
 * @param random 0 <= random < 1, spreads the senders that come again
 */
export function composeAnswer(report: WriteReport, random: number): WriteAnswer {
  if (report.undelivered.length > 0) {
    const causes = distinct(
      report.undelivered.map(({ upstream, cause }) => `upstream ${upstream}: ${cause}`),
    );
    const wantedMs = Math.max(...report.undelivered.map(({ retryAfterMs }) => retryAfterMs));
    const longest = Math.min(
      Math.max(Math.ceil(wantedMs / 1000), MIN_RETRY_AFTER_SECONDS),
      MAX_RETRY_AFTER_SECONDS,
    );
    return {
      status: 503,
      body: cut(`not all of the request could be delivered, send it again; ${causes.join("; ")}`),
      retryAfterSeconds: MIN_RETRY_AFTER_SECONDS + Math.floor(random * longest),
    };
  }
  const problems: string[] = [];
  if (report.refusedSeries > 0) {
    const examples = report.refusedExamples.map(({ reason, series }) => `${reason}: ${series}`).join("; ");
    const others = report.series - report.refusedSeries;
    problems.push(
      `${report.refusedSeries} of ${report.series} series refused, the other ${others} were forwarded; ${examples}`,
    );
  }
  const refusals = report.refusals.map(
    ({ upstream, status, reply }) => `upstream ${upstream} refused its part with ${status}: ${reply}`,
  );
  problems.push(...distinct(refusals));
  return problems.length === 0 ? { status: 204, body: "" } : { status: 400, body: cut(problems.join("\n")) };
}

/** The answer to a request that there is no memory for. @param random see composeAnswer() */
export function refuseForMemory(random: number): WriteAnswer {
  return {
    status: 503,
    body: "the gateway holds as much as memory.in_flight_bytes allows, nothing of the request was read; send it again",
    retryAfterSeconds: MIN_RETRY_AFTER_SECONDS + Math.floor(random * MAX_RETRY_AFTER_SECONDS),
  };
}

/** An upstream says the same of many parcels. */
function distinct(lines: readonly string[]): string[] {
  return [...new Set(lines)];
}

function cut(text: string): string {
  return text.length <= MAX_BODY_CHARACTERS ? text : `${text.slice(0, MAX_BODY_CHARACTERS - 1)}…`;
}
