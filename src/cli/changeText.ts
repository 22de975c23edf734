/** What `check --against` says of a route: what another list of upstreams moves, and how to write it so that less moves. */
import type { RouteOptions } from "../route/options.ts";
import { compareSlots, goesByNumber, movedShare, type SlotChanges } from "../route/renumbering.ts";
import { shortened } from "./shortened.ts";

/**
 * Compares a route with the one of its name that ran before.
 *
 * @param file where `before` comes from
 * @returns lines for a person; the first begins with "warning: " where numbers change that the algorithm goes by
 */
export function changeLines(file: string, before: RouteOptions, now: RouteOptions): string[] {
  const changes = compareSlots(before.upstreams, now.upstreams);
  const share = movedShare(before, now);
  const renumbers = renumberingText(changes, before, now);
  const changed = [...methodText(before, now, share), ...listText(changes)];
  const parts = [...changed, ...(renumbers ?? []), movedText(share, now)];
  if (renumbers === null && changed.length > 0) parts.push(...staysText(before, now, share));
  if (changes.replaced.length > 0)
    parts.push("one that is only at another url keeps them by keeping its name");
  const line = `route ${now.name} against ${file}: ${parts.join("; ")}`;
  if (renumbers === null) return [line];
  return [`warning: ${line}`, ...remedyLines(changes, before)];
}

/** How placement itself differs; nothing where keys are others, since that matters more. */
function methodText(before: RouteOptions, now: RouteOptions, share: number | null): string[] {
  const [old, algorithm] = [before.placement.algorithm, now.placement.algorithm];
  if (share === null || haveSameMethod(before, now)) return [];
  return [old === algorithm ? `other options of ${algorithm}` : `${algorithm} in the place of ${old}`];
}

function haveSameMethod(before: RouteOptions, now: RouteOptions): boolean {
  return JSON.stringify(before.placement) === JSON.stringify(now.placement);
}

function listText(changes: SlotChanges): string[] {
  const replaced = changes.replaced.map((pair) => `${pair.before} by ${pair.now}`);
  const list = (what: string, names: readonly string[]): string[] =>
    names.length === 0 ? [] : [`${what} ${shortened(names)}`];
  return [
    ...list("added", changes.added),
    ...list("taken out", changes.gone),
    ...list("replaced", replaced),
    ...list("removed", changes.removed),
    ...list("back", changes.restored),
    ...list("another weight for", changes.reweighted),
  ];
}

/** null where no number changes that keys go by. */
function renumberingText(changes: SlotChanges, before: RouteOptions, now: RouteOptions): string[] | null {
  const { algorithm } = now.placement;
  if (!goesByNumber(algorithm) || !goesByNumber(before.placement.algorithm)) return null;
  const numbers = changes.renumbered.map((slot) => `${slot.name} is ${slot.now} and was ${slot.before}`);
  const [count, old] = [now.upstreams.length, before.upstreams.length];
  if (numbers.length > 0) return [`${algorithm} goes by number, and numbers change: ${shortened(numbers)}`];
  if (algorithm !== "hashmod" || count === old) return null;
  return [`hashmod goes by how many there are, ${count} now and ${old} before, where jump moves few`];
}

function movedText(share: number | null, { placement }: RouteOptions): string {
  if (share === null) return "keys are others than before, so nearly all series move";
  if (share === 0) return "nothing moves";
  return `${(share * 100).toFixed(1)} % of its ${placement.key.kind === "task" ? "tasks" : "keys"} move`;
}

/** What can be said of the others where the list changes as it should. */
function staysText(before: RouteOptions, now: RouteOptions, share: number | null): string[] {
  const { algorithm } = now.placement;
  if (share === null || share === 0 || !haveSameMethod(before, now)) return [];
  const why = goesByNumber(algorithm) ? "no number changes" : `${algorithm} goes by name`;
  return [
    `only keys of these upstreams${algorithm === "maglev" ? ", and a few others," : ""} do, since ${why}`,
  ];
}

function remedyLines({ remedy, replaced }: SlotChanges, { upstreams }: RouteOptions): string[] {
  const { tombstones, toEnd, order } = remedy;
  const names = upstreams.map(({ name }) => name);
  for (const { slot, now } of replaced) names[slot] = now;
  const lines = tombstones.map(({ slot, name }) => {
    const where = slot === 0 ? "at the top of" : `behind ${names[slot - 1] ?? ""} in`;
    return `${where} the list, so that those behind it keep their numbers: - {name: ${yamlText(name)}, removed: true}`;
  });
  if (toEnd.length > 0) lines.push(`at the end of the list: ${toEnd.join(", ")}`);
  if (order.length > 0) lines.push(`in this order, as before: ${order.join(", ")}`);
  return lines.map((line) => `  write ${line}`);
}

/** A name as YAML takes it for text; without quotes where it is a plain word. */
function yamlText(name: string): string {
  return /^[a-z][\w.-]*$/i.test(name) && !/^null$/i.test(name) ? name : JSON.stringify(name);
}
