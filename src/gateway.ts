/**
 * The assembly: builds the stages from a Config and wires them.
 *
 * A request's journey: IngestServer reads it, Writes has it routed by the Router of the setup in force and delivered by a
 * Sender for each (route, upstream), composeAnswer() tells the sender.
 */
import type { Logger } from "pino";
import { AdminServer } from "./admin/server.ts";
import { beside } from "./beside.ts";
import { now } from "./clock.ts";
import type { Config } from "./config/config.ts";
import { fingerprint, publicHash } from "./config/fingerprint.ts";
import { DeliveryError } from "./deliver/errors.ts";
import { DELIVERY_DROP_REASONS } from "./deliver/outcome.ts";
import { SpoolError } from "./deliver/spool/errors.ts";
import { buildEndpoints, type InvalidFiles } from "./endpoints.ts";
import { type ConfigFile, NO_FILE } from "./configFile.ts";
import type { PlanRequest } from "./plan/api.ts";
import { formatProblem } from "./config/problem.ts";
import type { LoadedConfig } from "./config/load.ts";
import { comparePlacements } from "./plan/comparePlacements.ts";
import { currentShares, type SharesReport } from "./plan/currentShares.ts";
import { pastTexts } from "./plan/changeText.ts";
import { headline, planLines, routeHeadline } from "./plan/planText.ts";
import type { PlanReport } from "./plan/report.ts";
import { movesOf, refusalLines, type RouteMove } from "./reload/guard.ts";
import { Explainer } from "./explain/explainer.ts";
import { MemoryBudget } from "./memoryBudget.ts";
import { refuseForMemory } from "./receive/answer.ts";
import type { ListenAddress } from "./receive/options.ts";
import { IngestServer, type WriteHandler } from "./receive/server.ts";
import type { ReloadOutcome, ReloadTrigger } from "./reload/outcome.ts";
import { REFUSAL_REASONS } from "./route/door.ts";
import type { DecisionTableLimits } from "./route/options.ts";
import { DROP_REASONS, UNROUTED_REASONS } from "./route/tally.ts";
import { warmUp } from "./route/warmUp.ts";
import { buildRouter, buildSetup, routesAlike, type Setup } from "./setup.ts";
import { Metrics } from "./telemetry/metrics.ts";
import { Rarely } from "./telemetry/rarely.ts";
import { Turns } from "./turns.ts";
import { Upstreams, type UpstreamsChange } from "./upstreams.ts";
import { VERSION } from "./version.ts";
import { warmUpHttp } from "./warmUpHttp.ts";
import { type Arrivals, Writes } from "./writes.ts";

/** How long requests are routed before others are served. */
const ROUTING_BUDGET_MS = 10;
/** Enough for the last 503s to be sent and read. */
const LAST_ANSWERS_MS = 1_000;
const LAST_ANSWERS_IN_HASTE_MS = 500;
// For the router that warms the process up, whatever is configured for real requests.
const WARM_UP_BYTES = 1024 * 1024;
const WARM_UP_TABLE: DecisionTableLimits = { maxSeries: 10_000, maxBytes: 4 * 1024 * 1024 };
/** No step begins after this, so that a gateway of a thousand rules starts in time. */
const LONGEST_WARM_UP_MS = 1_000;
/** As what Prometheus sends by default, 2,000 samples, and more. */
const SMALL_BODY_BYTES = 256 * 1024;
const SAME_WARNING_EVERY_MS = 60_000;

const ABOUT_TO_END: ReloadOutcome = { kind: "failed", lines: ["the gateway is about to end"] };

/** An address cannot be listened on; the message says which. */
export class ListenError extends Error {}

type Origin = LoadedConfig["origin"];

/** What a gateway is made of besides what its first configuration makes of requests. */
interface GatewayParts {
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly memory: MemoryBudget;
  readonly arrivals: Arrivals;
  readonly upstreams: Upstreams;
  readonly turns: Turns;
  readonly file: ConfigFile;
}

export class Gateway {
  /** What it was started with, and what is in force. */
  readonly #started: Config;
  #config: Config;
  readonly #log: Logger;
  readonly #metrics: Metrics;
  readonly #rarely = new Rarely(now, SAME_WARNING_EVERY_MS);
  readonly #turns: Turns;
  readonly #memory: MemoryBudget;
  readonly #arrivals: Arrivals;
  readonly #upstreams: Upstreams;
  readonly #readConfig: ConfigFile["read"];
  readonly #writes: Writes;
  readonly #server: IngestServer;
  readonly #admin: AdminServer;
  #port = 0;
  #adminPort: number | null = null;
  #isStopping = false;
  /** Resolves when all plans that were asked for are made. */
  #lastPlan: Promise<unknown> = Promise.resolve();
  #isReloadGood = true;

  /**
   * Builds a gateway, which begins its work with start().
   *
   * @param file where the configuration comes from
   * @throws {SpoolError} when the spool cannot be used
   * @throws {DeliveryError} when an upstream's tls_config cannot be used
   */
  static async open(config: Config, log: Logger, file: ConfigFile = NO_FILE): Promise<Gateway> {
    const arrivals: Arrivals = { count: 0 };
    const metrics = new Metrics(VERSION, {
      refusal: REFUSAL_REASONS,
      drop: DROP_REASONS,
      unrouted: UNROUTED_REASONS,
      delivery: DELIVERY_DROP_REASONS,
    });
    const memory = new MemoryBudget(config.memory.inFlightBytes);
    const answered = (): void => {
      arrivals.count += 1;
    };
    const upstreams = new Upstreams({ log, metrics, memory, spool: config.spool, answered });
    try {
      const change = await upstreams.prepare(config);
      const turns = new Turns(now, ROUTING_BUDGET_MS);
      const setup = buildSetup(
        config,
        () => change.apply(),
        () => turns.isDue,
        null,
      );
      return new Gateway(setup, { log, metrics, memory, arrivals, upstreams, turns, file });
    } catch (error) {
      await upstreams.close(now());
      throw error;
    }
  }

  private constructor(setup: Setup, parts: GatewayParts) {
    const { log, metrics, memory, arrivals, upstreams, turns, file } = parts;
    this.#started = this.#config = setup.config;
    this.#log = log;
    this.#metrics = metrics;
    this.#memory = memory;
    this.#arrivals = arrivals;
    this.#upstreams = upstreams;
    this.#turns = turns;
    this.#readConfig = (text, name) => file.read(text, name);
    this.#writes = new Writes(setup, { arrivals, log, metrics, rarely: this.#rarely, turns });
    metrics.watchDecisionTable(() => this.#writes.setup.router.decisionTable);
    this.#server = this.#buildServer();
    const endpoints = buildEndpoints({
      exposition: () => metrics.exposition(),
      isReady: () => this.#server.isReady,
      ledger: () => metrics.ledger(),
      plan: (request) => this.#planTexts(request),
      explain: ({ labels, tenant, atMs }) => {
        const nowMs = Date.now();
        return new Explainer(this.#config, nowMs).explain(labels, tenant, atMs ?? nowMs);
      },
      shares: () => this.shares(),
      reload: (force) => file.reload(force),
    });
    this.#admin = new AdminServer(endpoints, setup.config.admin.token, (error) => {
      log.error({ err: error }, "an admin request failed by a bug");
    });
  }

  /**
   * Listens and is ready.
   *
   * @throws {ListenError} when an address cannot be had; nothing is left open then
   */
  async start(): Promise<void> {
    const startedAt = now();
    const isOver = (): boolean => now() - startedAt >= LONGEST_WARM_UP_MS;
    warmUp(buildRouter(this.#config, WARM_UP_BYTES, WARM_UP_TABLE, isOver, null), isOver);
    await warmUpHttp("127.0.0.1", this.#log, now);
    try {
      await this.#listen();
    } catch (error) {
      await this.#server.stop();
      await this.#upstreams.close(now());
      throw error;
    }
    await this.#reportOrphans();
    this.#upstreams.resume();
    this.#metrics.configured(publicHash(this.#config), Date.now());
    this.#server.setReady(true);
  }

  async #listen(): Promise<void> {
    const { listen, admin } = this.#config;
    this.#port = await listenOn("listen", listen, (address) => this.#server.listen(address));
    if (admin.listen === null) return;
    this.#adminPort = await listenOn("admin_listen", admin.listen, (address) => this.#admin.listen(address));
  }

  /** The port it listens on once it has started. */
  get port(): number {
    return this.#port;
  }

  /** The port of the admin listener once it has started; null without one. */
  get adminPort(): number | null {
    return this.#adminPort;
  }

  /**
   * Ends in order: not ready, still serving for the drain delay, then no new connections while requests under way are
   * finished, all within the grace period; what is not delivered by then is spooled, or refused to its sender.
   *
   * @param haste when it is aborted, nothing is waited for any longer: what is not delivered is spooled or refused at once
   */
  async stop(haste: AbortSignal = new AbortController().signal): Promise<void> {
    this.#isStopping = true;
    const { drainDelayMs, graceMs } = this.#config.shutdown;
    const deadline = now() + graceMs;
    this.#server.setReady(false);
    await waitFor(Math.min(drainDelayMs, graceMs), haste);
    const served = this.#server.stop();
    let overdueInHaste: NodeJS.Timeout | undefined;
    whenAborted(haste, () => {
      void this.#upstreams.closeSenders(now());
      overdueInHaste = setTimeout(() => {
        this.#server.abort();
      }, LAST_ANSWERS_IN_HASTE_MS);
    });
    // What is still under way shortly before the end is given back, so that its sender gets an answer and not a reset.
    const giveBack = setTimeout(
      () => {
        void this.#upstreams.closeSenders(now());
      },
      deadline - now() - Math.min(LAST_ANSWERS_MS, graceMs / 4),
    );
    const overdue = setTimeout(() => {
      this.#server.abort();
    }, deadline - now());
    await served;
    clearTimeout(giveBack);
    clearTimeout(overdue);
    clearTimeout(overdueInHaste);
    await this.#upstreams.close(deadline);
    await this.#admin.close();
  }

  /**
   * Puts another configuration in force, or changes nothing. Requests that are being routed are routed by the one before to
   * their end, and those that come meanwhile wait for the new one. Upstreams of an unchanged name go on with all that they have.
   *
   * What a running gateway cannot change (where it listens, its spool) is told, and takes effect at the next start. One reload
   * at a time.
   *
   * @param force  whether it may move more than `reload.max_moved_ratio` of a route
   * @param origin of its file
   */
  async reload(config: Config, force: boolean, origin: Origin = "native"): Promise<ReloadOutcome> {
    if (this.#endsSoon()) return ABOUT_TO_END;
    const before = this.#config;
    if (fingerprint(config) === fingerprint(before)) return { kind: "unchanged" };
    const move = routesAlike(before, config) ? NO_MOVE : await this.#moveOf(before, config, origin);
    if (!force && move.refusal !== null) return { kind: "refused", lines: move.refusal };
    // It may have begun to stop while the change was planned, or begin now: its senders end then, and cannot be changed.
    if (this.#endsSoon()) return ABOUT_TO_END;
    const failure = await this.#replace(config);
    if (failure !== null) return failure;
    this.#config = config;
    this.#memory.maxBytes = config.memory.inFlightBytes;
    this.#server.setLimits(config.limits);
    this.#admin.setToken(config.admin.token);
    this.#metrics.configured(publicHash(config), Date.now());
    this.#metrics.moved(move.ratios);
    const lines = [...move.lines, ...restartLines(this.#started, config)];
    return { kind: "applied", lines, warnings: pastWarnings(before, config) };
  }

  /** Puts another configuration in the place of the one that routes and delivers, or tells why it cannot. */
  async #replace(config: Config): Promise<ReloadOutcome | null> {
    let change: UpstreamsChange;
    try {
      change = await this.#upstreams.prepare(config);
    } catch (error) {
      if (!(error instanceof DeliveryError || error instanceof SpoolError)) throw error;
      return { kind: "failed", lines: [error.message] };
    }
    const build = (before: Setup): Setup =>
      buildSetup(
        config,
        () => change.apply(),
        () => this.#turns.isDue,
        before,
      );
    try {
      // Whatever were built when it is about to end would not be closed.
      await this.#writes.replaceSetup((before) => (this.#endsSoon() ? before : build(before)));
    } catch (error) {
      change.discard();
      if (!(error instanceof WebAssembly.RuntimeError)) throw error;
      return { kind: "failed", lines: ["there is no memory for its decision table and destinations"] };
    }
    if (this.#writes.setup.config === config) return null;
    change.discard();
    return ABOUT_TO_END;
  }

  async #moveOf(before: Config, after: Config, origin: Origin): Promise<Move> {
    const report = await this.#plan(before, after, origin);
    const ratios = movesOf(report, Date.now(), longestRetirementMs(after));
    const { maxMovedRatio } = after.reload;
    const isTooLarge = ratios.some(({ ratio }) => ratio > maxMovedRatio);
    return {
      ratios,
      lines: [
        headline(report),
        ...report.routes
          .filter(({ change }) => change !== "same")
          .flatMap((route) => [routeHeadline(route), ...route.advice]),
      ],
      refusal: isTooLarge ? refusalLines(ratios, maxMovedRatio, planLines(report)) : null,
    };
  }

  /** May be true after a pause where it was not before. */
  #endsSoon(): boolean {
    return this.#isStopping;
  }

  /**
   * What a change would move of the series that come in. One at a time: each takes its part of every round of the event loop.
   *
   * @param origin of the file after it
   */
  #plan(before: Config, after: Config, origin: Origin): Promise<PlanReport> {
    const planned = this.#lastPlan.then(() => this.#planNow(before, after, origin));
    this.#lastPlan = planned.catch(() => undefined);
    return planned;
  }

  #planNow(before: Config, after: Config, origin: Origin): Promise<PlanReport> {
    const { sample } = this.#writes.setup.router;
    const options = { nowMs: Date.now(), atMs: null, isLegacy: origin === "legacy" };
    return beside((isDue) => comparePlacements(before, after, sample, { ...options, isDue }));
  }

  async #planTexts({ from, to }: PlanRequest): Promise<PlanReport | InvalidFiles> {
    const read = (text: string, name: string): LoadedConfig => this.#readConfig(text, name);
    const before = from === undefined ? null : read(from, "from");
    const after = read(to, "to");
    const problems = [before, after].flatMap((file) =>
      file === null || file.config !== null ? [] : file.problems.map(formatProblem),
    );
    if (after.config === null || problems.length > 0) return { problems };
    return this.#plan(before?.config ?? this.#config, after.config, after.origin);
  }

  /** How the series that come in spread over routes, upstreams and tasks now. */
  shares(): Promise<SharesReport> {
    const { sample } = this.#writes.setup.router;
    return beside((isDue) => currentShares(this.#config, sample, Date.now(), isDue));
  }

  /** Counts a reload that has come to its end; one that found nothing new when nobody had asked is none. */
  countReload({ kind }: ReloadOutcome, trigger: ReloadTrigger): void {
    const isGood = kind === "applied" || kind === "unchanged";
    // After a wrong file that was put right again, the last reload is a successful one.
    if (kind === "unchanged" && trigger === "watch" && this.#isReloadGood) return;
    this.#isReloadGood = isGood;
    this.#metrics.reloaded(kind === "unchanged" ? "applied" : kind);
  }

  /** What upstreams have left in the spool that the configuration does not name any more. */
  async #reportOrphans(): Promise<void> {
    const orphans = this.#upstreams.orphans();
    const drops = this.#config.spool.orphans === "drop";
    for (const { route, upstream, records, bytes } of orphans) {
      const fate = drops ? "dropped (spool.orphans: drop)" : "kept until the upstream is configured again";
      const message = `the spool holds ${records} parcels for an upstream that is not configured: ${fate}`;
      this.#log.warn({ route, upstream, records, bytes }, message);
      this.#metrics.orphans(route, upstream, records, bytes, drops);
    }
    if (drops) await this.#upstreams.dropOrphans();
  }

  #buildServer(): IngestServer {
    // Small bodies have a part of their own: large ones, which take more of it, must not shut the door on them.
    const [small, large] = [this.#memory.holder(), this.#memory.holder()];
    this.#metrics.watchMemory(this.#memory, () => small.refusals + large.refusals);
    const handler: WriteHandler = {
      write: (body, headers, onRouted) => this.#writes.write(body, headers, onRouted),
      refuse: () => {
        this.#rarely.say("memory", (heldBack) => {
          this.#log.warn({ heldBack }, "requests are refused unread, as much is under way as memory allows");
        });
        return refuseForMemory(Math.random());
      },
      metrics: () => this.#metrics.exposition(),
    };
    return new IngestServer(
      { ...this.#config.limits, maxConnectionAgeMs: this.#config.maxConnectionAgeMs },
      handler,
      {
        answered: (status, durationMs) => {
          this.#metrics.requests.inc({ code: status ?? "closed" });
          this.#metrics.requestSeconds.observe(durationMs / 1000);
          this.#log.debug({ status, durationMs }, "request");
        },
        connected: () => {
          this.#turns.giveWay();
        },
        arrived: () => {
          this.#arrivals.count += 1;
        },
        bodyRead: (bytes) => {
          this.#metrics.bodyBytes.inc(bytes);
        },
        malformed: ({ code, message }) => {
          this.#metrics.malformed.inc({ code });
          this.#rarely.say(code, (heldBack) => {
            this.#log.warn({ code, heldBack }, `a request is refused whole: ${message}`);
          });
        },
        failed: (error) => {
          this.#log.error({ err: error }, "a request failed by a bug, its sender got 500");
        },
      },
      { now, random: Math.random },
      (bytes) => (bytes <= SMALL_BODY_BYTES ? small : large),
    );
  }
}

/** Listens, or says which option's address could not be had. */
async function listenOn(
  option: string,
  address: ListenAddress,
  listen: (address: ListenAddress) => Promise<number>,
): Promise<number> {
  try {
    return await listen(address);
  } catch (error) {
    const { host, port } = address;
    const reason = (error as Error).message;
    throw new ListenError(`cannot listen on ${host}:${port} (${option}): ${reason}`, { cause: error });
  }
}

/** What a reload moves. */
interface Move {
  readonly ratios: readonly RouteMove[];
  /** What that is, and what is to be known of it. */
  readonly lines: readonly string[];
  /** What is said when that is more than may move; else null. */
  readonly refusal: readonly string[] | null;
}

const NO_MOVE: Move = { ratios: [], lines: ["no series goes elsewhere"], refusal: null };

/** For so long late items may come for a period that has ended. */
function longestRetirementMs({ routes }: Config): number {
  return Math.max(...routes.map(({ route }) => route.retireAfterMs));
}

/** Of periods that are new and in force already. */
function pastWarnings(before: Config, after: Config): string[] {
  const last = new Map(before.routes.map(({ route }) => [route.name, route]));
  return after.routes.flatMap(({ route }) => {
    const known = last.get(route.name);
    return known === undefined ? [] : pastTexts({ last: known, earlier: null }, route, Date.now());
  });
}

/** What of a configuration takes effect at the next start alone. */
function restartLines(before: Config, after: Config): string[] {
  const parts: readonly [string, (config: Config) => unknown][] = [
    ["listen", ({ listen }) => listen],
    ["admin_listen", ({ admin }) => admin.listen],
    ["max_connection_age", ({ maxConnectionAgeMs }) => maxConnectionAgeMs],
    ["spool", ({ spool }) => spool],
  ];
  return parts
    .filter(([, of]) => fingerprint(of(before)) !== fingerprint(of(after)))
    .map(([name]) => `${name} is another and takes effect at the next start`);
}

/** Calls back at once if it is aborted already. */
function whenAborted(signal: AbortSignal, callback: () => void): void {
  if (signal.aborted) callback();
  else signal.addEventListener("abort", callback, { once: true });
}

async function waitFor(ms: number, haste: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, ms);
    whenAborted(haste, () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
