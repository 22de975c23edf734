/** What the admin listener of a gateway offers. */
import type { AdminAnswer, Endpoint } from "./admin/endpoint.ts";
import type { ConfigFile } from "./configFile.ts";
import type { Explanation } from "./explain/explainer.ts";
import { type ExplainRequest, readExplainRequest } from "./explain/request.ts";
import { type PlanRequest, readPlanRequest } from "./plan/api.ts";
import type { SharesReport } from "./plan/currentShares.ts";
import type { PlanReport } from "./plan/report.ts";
import { HEALTH_PATHS, READY_PATH } from "./receive/server.ts";
import type { ReloadOutcome } from "./reload/outcome.ts";
import type { LedgerReport } from "./telemetry/ledgerReport.ts";

/** What is wrong with texts of configuration files, a line each. */
export interface InvalidFiles {
  readonly problems: readonly string[];
}

/** What endpoints ask of their gateway. */
export interface EndpointTools {
  readonly exposition: () => Promise<{ readonly contentType: string; readonly text: string }>;
  readonly isReady: () => boolean;
  readonly ledger: () => LedgerReport;
  /** What a change of the configuration would move, by the texts of files. */
  readonly plan: (request: PlanRequest) => Promise<PlanReport | InvalidFiles>;
  readonly explain: (request: ExplainRequest) => Explanation;
  readonly shares: () => Promise<SharesReport>;
  readonly reload: ConfigFile["reload"];
}

export function buildEndpoints(tools: EndpointTools): Endpoint[] {
  const { exposition, isReady, ledger, plan, explain, shares, reload } = tools;
  return [
    {
      method: "GET",
      path: "/metrics",
      isPublic: true,
      answer: async () => ({ kind: "text", status: 200, ...(await exposition()) }),
    },
    ...HEALTH_PATHS.map((path): Endpoint => ({
      method: "GET",
      path,
      isPublic: true,
      answer: () => ({ kind: "text", status: 200, text: "healthy" }),
    })),
    {
      method: "GET",
      path: READY_PATH,
      isPublic: true,
      answer: () =>
        isReady()
          ? { kind: "text", status: 200, text: "ready" }
          : { kind: "text", status: 503, text: "not ready" },
    },
    {
      method: "GET",
      path: "/api/v1/status/ledger",
      answer: () => ({ kind: "data", data: ledger() }),
    },
    {
      method: "GET",
      path: "/api/v1/status/series",
      answer: async () => ({ kind: "data", data: await shares() }),
    },
    {
      method: "POST",
      path: "/api/v1/explain",
      answer: ({ body }) => {
        const request = readExplainRequest(body);
        return typeof request === "string" ? badData(request) : { kind: "data", data: explain(request) };
      },
    },
    {
      method: "POST",
      path: "/api/v1/plan",
      answer: async ({ body }) => {
        const request = readPlanRequest(body);
        if (typeof request === "string") return badData(request);
        const answer = await plan(request);
        return "routes" in answer
          ? { kind: "data", data: answer }
          : {
              kind: "error",
              status: 422,
              errorType: "invalid_configuration",
              error: answer.problems.join("\n"),
            };
      },
    },
    {
      method: "POST",
      path: "/-/reload",
      answer: async ({ query }) => {
        const force = readForce(query);
        return typeof force === "string" ? badReload(force) : reloadAnswer(await reload(force));
      },
    },
  ];
}

function badData(error: string): AdminAnswer {
  return { kind: "error", status: 400, errorType: "bad_data", error };
}

/** Answers what is wrong as text. */
function readForce(query: URLSearchParams): boolean | string {
  const unknown = [...query.keys()].find((key) => key !== "force");
  if (unknown !== undefined) return `unknown parameter ${unknown}; want force=true, or none`;
  const given = query.getAll("force");
  const [force = "false"] = given;
  if (given.length > 1 || (force !== "true" && force !== "false"))
    return `want force=true or force=false, once; got force=${given.join(", force=")}`;
  return force === "true";
}

function badReload(fault: string): AdminAnswer {
  return { kind: "text", status: 400, text: `${fault}\nthe configuration was not read\n` };
}

const RELOAD_STATUS = { applied: 200, unchanged: 200, invalid: 400, refused: 409, failed: 503 } as const;
const RELOAD_WORDS = {
  applied: "the configuration is in force",
  unchanged: "the configuration is the one that runs",
  invalid: "the configuration is invalid and changes nothing",
  refused: "the configuration is refused and changes nothing",
  failed: "the configuration cannot be put in force and changes nothing",
} as const;

/** For a person with curl. */
function reloadAnswer(outcome: ReloadOutcome): AdminAnswer {
  const lines = outcome.kind === "unchanged" ? [] : outcome.lines;
  const warnings = outcome.kind === "applied" ? outcome.warnings.map((warning) => `warning: ${warning}`) : [];
  const text = [RELOAD_WORDS[outcome.kind], ...warnings, ...lines].map((line) => `${line}\n`).join("");
  return { kind: "text", status: RELOAD_STATUS[outcome.kind], text };
}
