/** A native configuration document to the options of the stages. The defaults of everything outside routes live here. */
import type { PlacementCheck } from "../hash/placementFault.ts";
import type { RelabelCheck } from "../relabel/options.ts";
import { readAdmin } from "./adminOptions.ts";
import type { Config, ReloadOptions, ShutdownOptions } from "./config.ts";
import { listenAddress } from "./listenAddress.ts";
import { readMemory } from "./memorySection.ts";
import type { MapNode } from "./node.ts";
import type { ProblemList } from "./problem.ts";
import { RouteReader } from "./routeSection.ts";
import { RuleReader } from "./ruleReader.ts";
import { listOf, someOf } from "./lists.ts";
import { flag, integer, ratio } from "./scalars.ts";
import type { SecretFiles } from "./secrets.ts";
import { sectionOf } from "./section.ts";
import type { Section } from "./section.ts";
import { readSpool } from "./spoolSection.ts";
import { duration, formatDuration, KIB, MIB, size } from "./units.ts";

/** Where sorting the names of a hostile sender begins to take milliseconds a series. */
const MAX_LABELS = 4096;
const SIZE_LIMIT = { min: 1, max: 256 * MIB, because: "more would not fit into the engine's memory" };

/** Where options have to go together, the stages that take them say what is wrong. */
export interface StageChecks {
  /** Whether the fields of a relabel rule go together: faultOf(). */
  readonly checkRule: RelabelCheck;
  /** Whether a placement algorithm and a list of slots go together: placementFault(). */
  readonly checkPlacement: PlacementCheck;
}

/**
 * Reads a document.
 *
 * @returns of use only when `problems` has no errors
 */
export function readNative(
  document: MapNode,
  files: SecretFiles,
  checks: StageChecks,
  problems: ProblemList,
): Config | null {
  return sectionOf((top) => readTop(top, files, checks))(document, problems);
}

function readTop(top: Section, files: SecretFiles, { checkRule, checkPlacement }: StageChecks): Config {
  const rules = new RuleReader(checkRule);
  const routes = new RouteReader(files, rules, checkPlacement);
  const list = someOf(listOf(routes.read, "routes"), "routes");
  return {
    listen: top.optional("listen", listenAddress, { host: "127.0.0.1", port: 8080 }),
    admin: readAdmin(top, files),
    reload: top.section("reload", readReload),
    limits: top.section("limits", readLimits),
    memory: top.section("memory", readMemory),
    shutdown: top.section("shutdown", readShutdown),
    maxConnectionAgeMs: top.optional("max_connection_age", duration({ min: 0 }), 120_000),
    spool: top.section("spool", readSpool),
    relabel: rules.readGlobal(top, "relabel_configs"),
    routes: top.required("routes", list, "a list of routes") ?? [],
  };
}

function readLimits(limits: Section): Config["limits"] {
  return {
    maxBodyBytes: limits.optional("max_body_bytes", size(SIZE_LIMIT), 32 * MIB),
    maxDecodedBytes: limits.optional("max_decoded_bytes", size(SIZE_LIMIT), 32 * MIB),
    maxLabels: limits.optional("max_labels", integer({ min: 1, max: MAX_LABELS }), 256),
    maxLabelNameBytes: limits.optional("max_label_name_bytes", size(SIZE_LIMIT), KIB),
    maxLabelValueBytes: limits.optional("max_label_value_bytes", size(SIZE_LIMIT), 64 * KIB),
    bodyTimeoutMs: limits.optional("body_timeout", duration({ min: 1 }), 15_000),
  };
}

function readReload(reload: Section): ReloadOptions {
  return {
    watch: reload.optional("watch", flag, true),
    maxMovedRatio: reload.optional("max_moved_ratio", ratio, 0.5),
  };
}

function readShutdown(shutdown: Section): ShutdownOptions {
  const drainDelayMs = shutdown.optional("drain_delay", duration({ min: 0 }), 5_000);
  const graceMs = shutdown.optional("grace", duration({ min: 0 }), 30_000);
  if (drainDelayMs > graceMs) {
    const given = shutdown.has("drain_delay") ? "drain_delay" : "grace";
    const delay = `drain_delay ${formatDuration(drainDelayMs)}`;
    const grace = `grace ${formatDuration(graceMs)}`;
    shutdown.problems.error(
      shutdown.placeOf(given),
      `want a drain_delay within the grace; got ${delay}, ${grace}`,
    );
  }
  return { drainDelayMs, graceMs };
}
