/** `plan`: what a change of the configuration would move. */
import { readFileSync } from "node:fs";
import { loadDocument, type LoadOptions } from "../config/load.ts";
import { formatProblem } from "../config/problem.ts";
import { parseDuration } from "../config/units.ts";
import { formatMoment } from "../moment.ts";
import { type PlanRequest, readPlanAnswer } from "../plan/api.ts";
import { comparePlacements } from "../plan/comparePlacements.ts";
import type { PlanConfig } from "../plan/planConfig.ts";
import { planLines } from "../plan/planText.ts";
import type { PlanReport } from "../plan/report.ts";
import type { SampleState } from "../route/liveSample.ts";
import { yamlLines } from "./nodeYaml.ts";
import { proposePeriods, type ValidFile } from "./periodProposal.ts";
import { type NamedTenants, noSeries, seriesOfFile, seriesOfRequests } from "./planSeries.ts";
import { printable } from "./printable.ts";
import { effectiveFrom } from "./topologyProposal.ts";

export interface PlanCommand {
  /** May be left out with a gateway: it compares with what it runs. */
  readonly from?: string;
  readonly to: string;
  readonly gateway?: string;
  readonly tokenFile?: string;
  readonly requests?: string;
  readonly series?: string;
  readonly tenant?: string;
  readonly json: boolean;
  readonly effective?: string;
  readonly round?: string;
}

export interface PlanTools {
  readonly fromOptions: LoadOptions;
  readonly toOptions: LoadOptions;
  readonly nowMs: number;
  readonly print: (line: string) => void;
  readonly complain: (line: string) => void;
}

const NEVER_DUE = (): boolean => false;
/** The gateway decides tens of thousands of series beside its work. */
const ANSWER_WITHIN_MS = 120_000;
const NOT_FOUND = 404;
/** A year of four digits is wanted in any case. */
const LONGEST_MS = 1000 * 365 * 86_400_000;

/**
 * Plans a change.
 *
 * @returns the exit code: 1 when a file is invalid, the gateway cannot tell, or the change cannot be written as a period,
 *          2 for options that do not go together
 * @throws {SyntaxError} for series that cannot be read
 */
export async function plan(command: PlanCommand, tools: PlanTools): Promise<number> {
  const fault = faultOf(command);
  if (fault !== null) {
    tools.complain(`plan ${fault}`);
    return 2;
  }
  if (command.gateway !== undefined) return planAtGateway(command, command.gateway, tools);
  const documents = loadBoth(command, tools);
  if (documents === null) return 1;
  const [{ config: before }, { config: after }] = documents;
  const sample = await seriesOf(command, [before, after], tools);
  const steps = comparePlacements(before, after, sample, {
    nowMs: tools.nowMs,
    atMs: null,
    isLegacy: documents[1].isLegacy,
    isDue: NEVER_DUE,
  });
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  show(step.value, command, tools);
  return command.effective === undefined ? 0 : propose(...documents, command, tools);
}

/** What is wrong with the options, taken together. */
function faultOf({
  from,
  gateway,
  requests,
  series,
  tenant,
  tokenFile,
  effective,
  round,
  json,
}: PlanCommand): string | null {
  const sources = [gateway, requests, series].filter((source) => source !== undefined);
  if (sources.length > 1) return "wants one of --gateway, --requests and --series";
  if (from === undefined && gateway === undefined)
    return "wants --from FILE, or a --gateway that runs what is changed";
  if (tokenFile !== undefined && gateway === undefined)
    return "has a use for --token-file with --gateway alone";
  if (tenant !== undefined && gateway !== undefined)
    return "has no use for --tenant with --gateway, which knows the tenants of its series";
  if ((effective === undefined) !== (round === undefined)) return "wants --effective and --round together";
  if (effective === undefined || round === undefined) return null;
  if (from === undefined) return "wants --from for --effective: the period before is written, too";
  if (json) return "prints YAML for --effective, which --json leaves no room for";
  if (!isWithin(parseDuration(effective), 0))
    return "wants --effective as a duration of at most 1000y, such as 10m";
  return isWithin(parseDuration(round), 1)
    ? null
    : "wants --round as a duration of at most 1000y, such as 1m";
}

function isWithin(durationMs: number | null, leastMs: number): boolean {
  return durationMs !== null && durationMs >= leastMs && durationMs <= LONGEST_MS;
}

interface PlanFile extends ValidFile {
  readonly isLegacy: boolean;
}

/** Says what is wrong with either of them. */
function loadBoth({ from, to }: PlanCommand, tools: PlanTools): readonly [PlanFile, PlanFile] | null {
  const before = loadOrComplain(from ?? "", tools.fromOptions, tools);
  const after = loadOrComplain(to, tools.toOptions, tools);
  return before === null || after === null ? null : [before, after];
}

function loadOrComplain(file: string, options: LoadOptions, { complain }: PlanTools): PlanFile | null {
  const { origin, config, document, problems } = loadDocument(file, options);
  if (config !== null && document !== null)
    return { name: file, config, document, isLegacy: origin === "legacy" };
  for (const problem of problems) complain(formatProblem(problem));
  return null;
}

async function seriesOf(
  { requests, series, tenant }: PlanCommand,
  configs: readonly PlanConfig[],
  { complain }: PlanTools,
): Promise<SampleState> {
  const headers = configs.flatMap(({ routes }) => routes.map(({ route }) => route.tenant.header));
  const named =
    tenant === undefined ? [] : headers.map((header) => [header, { header: tenant, text: tenant }] as const);
  const tenants: NamedTenants = new Map(named);
  if (series !== undefined) return seriesOfFile(series, tenants);
  return requests === undefined ? noSeries() : seriesOfRequests(requests, tenants, complain);
}

function show(report: PlanReport, { json }: PlanCommand, { print }: PlanTools): void {
  if (json) print(JSON.stringify(report, null, 2));
  // A gateway's answer is foreign text.
  else for (const line of planLines(report)) print(printable(line));
}

/**
 * Prints the topologies that bring the change of each list into force at a moment; nothing when one of them would not be valid.
 *
 * @returns the exit code
 */
function propose(before: ValidFile, after: ValidFile, command: PlanCommand, tools: PlanTools): number {
  const { nowMs, toOptions, print, complain } = tools;
  const [effectiveMs, roundMs] = [command.effective, command.round].map(
    (text) => parseDuration(text ?? "") ?? 0,
  );
  const fromMs = effectiveFrom(nowMs, effectiveMs ?? 0, roundMs ?? 1);
  const proposal = proposePeriods(before, after, fromMs, toOptions);
  if (proposal.kind === "refused") {
    for (const line of proposal.lines) complain(printable(line));
    return 1;
  }
  for (const [name, topology] of proposal.topologies) {
    const comment = `route ${printable(name)}, in the place of its upstreams or topology; reload every replica before ${formatMoment(fromMs)}`;
    print("");
    yamlLines(topology, comment).forEach(print);
  }
  if (proposal.topologies.size === 0)
    complain("no route differs in its list of upstreams alone, so there is no period to propose");
  return 0;
}

/** Asks a running gateway, which knows its series. It looks at no file that the texts name, and need not have them. */
async function planAtGateway(command: PlanCommand, gateway: string, tools: PlanTools): Promise<number> {
  const { complain } = tools;
  const from = command.from === undefined ? {} : { from: readFileSync(command.from, "utf8") };
  const answer = await ask(gateway, { ...from, to: readFileSync(command.to, "utf8") }, command.tokenFile);
  if (typeof answer === "string") {
    complain(answer);
    return 1;
  }
  show(answer, command, tools);
  if (command.effective === undefined) return 0;
  const documents = loadBoth(command, tools);
  return documents === null ? 1 : propose(...documents, command, tools);
}

/** Answers in text what went wrong. */
async function ask(
  gateway: string,
  request: PlanRequest,
  tokenFile: string | undefined,
): Promise<PlanReport | string> {
  const url = `${gateway.replace(/\/+$/, "")}/api/v1/plan`;
  if (!URL.canParse(url)) return `--gateway: want a url as http://127.0.0.1:8081; got ${printable(gateway)}`;
  const token = tokenFile === undefined ? null : readFileSync(tokenFile, "utf8").trim();
  try {
    const response = await fetch(url, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      },
      body: JSON.stringify(request),
      redirect: "error",
      signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
    });
    const body = await response.text();
    const answer = readPlanAnswer(body);
    if (answer?.status === "success") return answer.data;
    if (answer?.status === "error") return answer.error.split("\n").map(printable).join("\n");
    const hint = response.status === NOT_FOUND ? "; the gateway has it on its admin_listen" : "";
    return `${url}: ${response.status} ${printable(body.slice(0, 200).trim())}${hint}`;
  } catch (error) {
    const { cause, message } = error as Error;
    return `${url}: ${cause instanceof Error ? cause.message : message}`;
  }
}
