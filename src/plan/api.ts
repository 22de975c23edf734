/** POST /api/v1/plan: what goes in and what comes out, as JSON. */
import type { PlanReport } from "./report.ts";

export interface PlanRequest {
  /** The text of a configuration file; left out for the one that runs. */
  readonly from?: string;
  readonly to: string;
}

export type PlanAnswer =
  | { readonly status: "success"; readonly data: PlanReport }
  /** With the problems of a file, a line each, as `check` prints them; or with what else is wrong. */
  | { readonly status: "error"; readonly error: string };

const WANTED = 'want {"to": "...", "from": "..."}, the texts of configuration files';

/** Answers what is wrong as text. @param body of a request */
export function readPlanRequest(body: string): PlanRequest | string {
  const request = parsed(body);
  if (!isMap(request)) return WANTED;
  const { from, to, ...others } = request;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) return `unknown key ${unknown}; ${WANTED}`;
  if (typeof to !== "string") return "want the text of a configuration file in `to`";
  if (from !== undefined && typeof from !== "string")
    return "want the text of a configuration file in `from`";
  return { to, ...(from === undefined ? {} : { from }) };
}

/** null when it is no answer of this gateway. @param body of an answer */
export function readPlanAnswer(body: string): PlanAnswer | null {
  const answer = parsed(body);
  if (!isMap(answer)) return null;
  const { status, data, error } = answer;
  if (status === "success" && isMap(data) && Array.isArray(data["routes"]))
    return answer as unknown as PlanAnswer;
  return status === "error" && typeof error === "string" ? { status, error } : null;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
