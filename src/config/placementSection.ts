/** `routes[].placement`: what is hashed for the upstream, by which algorithm, and whether that and the upstreams go together. */
import type { KeyFormat } from "../hash/keyRule.ts";
import type { PlacementMethod } from "../hash/placement.ts";
import type { PlacementCheck } from "../hash/placementFault.ts";
import type { NamedSlot } from "../hash/slots.ts";
import type { PlacementKey, PlacementOptions, TaskOptions } from "../route/options.ts";
import { setOf, someOf } from "./lists.ts";
import type { Place } from "./problem.ts";
import { integer, oneOf, text, wrong } from "./scalars.ts";
import { sectionOf } from "./section.ts";
import type { Reader, Section } from "./section.ts";
import type { ListedPeriod } from "./topologySection.ts";

const ALGORITHM = oneOf("jump", "balanced", "hashmod", "ring", "maglev", "rendezvous", "multi_probe");
/** Algorithms with options, which stand in a map of their name. */
const WITH_OPTIONS = ["ring", "maglev", "multi_probe"] as const;
/** Whether it is too small or too large is for the algorithm to say. */
const ANY_INTEGER = integer({ min: Number.MIN_SAFE_INTEGER });
/** How many there can be is for the list of upstreams to say. */
const REPLICAS = integer({ min: 1 });
const SOME_LABEL_NAMES = someOf(setOf(text, "label names"), "label names");

/** What placement needs to know of the rest of its route. */
export interface PlacedRoute {
  readonly keyFormat: KeyFormat;
  /** null as well when it was wrong. */
  readonly tasks: TaskOptions | null;
  readonly hasTasks: boolean;
  /** null when something in one of them was wrong. */
  readonly periods: readonly ListedPeriod[] | null;
}

/** @param check what says whether an algorithm and slots go together */
export function readPlacement(
  placement: Section,
  route: PlacedRoute,
  check: PlacementCheck,
): PlacementOptions {
  const usual: PlacementKey = route.hasTasks ? { kind: "task" } : { kind: "all" };
  const given = placement.node("key");
  const key = given === null ? usual : placementKey(given, placement.problems);
  const missingKey = placement.optional("missing_key", oneOf("one_place", "whole_set"), "one_place");
  if (key !== null) checkKey(placement, key, route);
  if (key !== null && key.kind !== "by" && missingKey === "whole_set") {
    const message = "whole_set has a meaning only with key: {by: [...]}; leave it out";
    placement.problems.error(placement.placeOf("missing_key"), message);
  }
  const placed = readMethod(placement, key?.kind === "task" ? (route.tasks?.count ?? null) : null);
  const replicas = placement.optional("replicas", REPLICAS, 1);
  // A task key without tasks was reported, and leaves open how many tasks there are to be balanced.
  const isKnown = key !== null && (key.kind !== "task" || route.tasks !== null);
  if (placed !== null && isKnown) {
    for (const period of route.periods ?? []) reportFaults(placement, placed, replicas, period, check);
  }
  return { key: key ?? usual, missingKey, replicas, ...(placed?.method ?? { algorithm: "jump" }) };
}

const placementKey: Reader<PlacementKey> = (node, problems) => {
  if (node.kind === "map") return sectionOf(readLabelKey)(node, problems);
  if (node.kind === "text" && node.text === "task") return { kind: "task" };
  if (node.kind === "text" && node.text === "series") return { kind: "all" };
  return wrong(node, problems, "task, series, {by: [...]} or {without: [...]}");
};

function readLabelKey(key: Section): PlacementKey | null {
  refuseBoth(key);
  const by = key.optional("by", SOME_LABEL_NAMES, null);
  const without = key.optional("without", SOME_LABEL_NAMES, null);
  if (by !== null) return { kind: "by", names: by };
  if (without !== null) return { kind: "without", names: without };
  if (!key.has("by") && !key.has("without")) key.problems.error(key.place, "want by or without; got neither");
  return null;
}

export function refuseBoth(section: Section): void {
  if (section.has("by") && section.has("without")) {
    section.problems.error(section.placeOf("without"), "want either by or without; got both");
  }
}

function checkKey(placement: Section, key: PlacementKey, { keyFormat, tasks, hasTasks }: PlacedRoute): void {
  if (key.kind === "task" && !hasTasks) {
    placement.problems.error(
      placement.placeOf("key"),
      "task needs tasks in this route; want tasks, or key: series",
    );
  }
  // Old files may hash the task by its label; in keys of pairs nobody has a reason to.
  if (key.kind === "by" && keyFormat === "pairs" && tasks !== null && key.names.includes(tasks.label)) {
    const message = `${tasks.label} is the task label; want key: task, or the label only with key_format: flat`;
    placement.problems.error(placement.placeOf("key"), message);
  }
}

interface PlacedMethod {
  readonly method: PlacementMethod;
  /** Where to say what is wrong with it. */
  readonly place: Place;
}

/** @param tasks how many tasks are placed; null where keys are none */
function readMethod(placement: Section, tasks: number | null): PlacedMethod | null {
  const given = placement.node("algorithm");
  const algorithm = given === null ? "jump" : ALGORITHM(given, placement.problems);
  const place = placement.placeOf("algorithm");
  for (const other of WITH_OPTIONS) {
    if (!placement.has(other) || algorithm === null || other === algorithm) continue;
    const message = `has a meaning only with algorithm: ${other}, and this is ${algorithm}; leave it out`;
    placement.problems.error(placement.placeOf(other), message);
  }
  switch (algorithm) {
    case null:
      return null;
    case "balanced":
      return { method: { algorithm, tasks }, place };
    case "ring":
      return placement.section(algorithm, readRing);
    case "maglev":
      return placement.section(algorithm, readMaglev);
    case "multi_probe":
      return placement.section(algorithm, readMultiProbe);
    case "jump":
    case "hashmod":
    case "rendezvous":
      return { method: { algorithm }, place };
  }
}

function readRing(ring: Section): PlacedMethod {
  const hash = ring.optional("hash", oneOf("md5", "fnv1a"), "md5");
  const points = ring.optional("points", ANY_INTEGER, 160);
  return { method: { algorithm: "ring", hash, points }, place: ring.placeOf("points") };
}

function readMaglev(maglev: Section): PlacedMethod {
  const table = maglev.optional("table", ANY_INTEGER, 65_537);
  return { method: { algorithm: "maglev", table }, place: maglev.placeOf("table") };
}

function readMultiProbe(multiProbe: Section): PlacedMethod {
  const probes = multiProbe.optional("probes", ANY_INTEGER, 21);
  return { method: { algorithm: "multi_probe", probes }, place: multiProbe.placeOf("probes") };
}

/**
 * Reports all slots of a period that are wrong, and too many replicas. With names that differ, what is wrong with a slot is its weight:
 * without it the others come to light, as what is wrong with the algorithm does without replicas.
 */
function reportFaults(
  placement: Section,
  { method, place }: PlacedMethod,
  wanted: number,
  { fromMs, upstreams, place: listPlace }: ListedPeriod,
  check: PlacementCheck,
): void {
  const { problems } = placement;
  const left: NamedSlot[] = upstreams.map(({ slot }) => slot);
  let replicas = wanted;
  for (let fault = check(method, left, replicas); fault !== null; fault = check(method, left, replicas)) {
    if (fault.code === "PLACEMENT_TOO_FEW_LIVE") {
      problems.error(fromMs === null ? placement.placeOf("replicas") : listPlace, fault.message);
      replicas = 1;
      continue;
    }
    const faulty = upstreams[fault.slot ?? -1];
    if (fault.slot === null || faulty?.slot.weight === undefined) {
      problems.error(fault.code === "PLACEMENT_ALL_REMOVED" ? listPlace : place, fault.message);
      return;
    }
    problems.error(faulty.weightPlace, fault.message);
    left[fault.slot] = { name: faulty.slot.name, removed: faulty.slot.removed === true };
  }
}
