/**
 * Labels out of the parts of a Graphite name, as vmagent's action graphite takes them.
 *
 * A `*` in the pattern stands for any text without a dot, up to the first place where the pattern's next piece of text is.
 */

/** Pieces of text, and `*` between them. */
export type GraphiteMatch = readonly string[];

export interface GraphiteLabel {
  readonly name: string;
  readonly template: readonly TemplatePart[];
}

/** What is put there when the pattern has a star of that number, counted from 1; 0 is the whole name. */
interface TemplatePart {
  readonly text: string;
  readonly star: number | null;
}

const STAR = "*";

export function parseGraphiteMatch(pattern: string): GraphiteMatch {
  return pattern.split(/(\*)/).filter((part) => part !== "");
}

export function parseGraphiteLabels(labels: ReadonlyMap<string, string>): GraphiteLabel[] {
  return Array.from(labels, ([name, template]) => ({ name, template: parseTemplate(template) }));
}

/** `$1` and `${1}`; whatever else stands behind a dollar sign is text, from an open `${` on all of it. */
function parseTemplate(template: string): TemplatePart[] {
  const parts: TemplatePart[] = [];
  for (const { 0: text, 1: braced, 2: bare } of template.matchAll(
    /\$\{([^}]*)\}|\$\{[^}]*$|\$([0-9]+)|\$|[^$]+/g,
  )) {
    const number = braced ?? bare ?? "";
    parts.push({ text, star: /^[0-9]{1,15}$/.test(number) ? Number(number) : null });
  }
  return parts;
}

/** The name and what its stars stand for, null when the name does not match. */
export function matchGraphite(pattern: GraphiteMatch, name: string): string[] | null {
  const found = [name];
  let rest = name;
  for (let at = 0; at < pattern.length; at++) {
    const part = pattern[at] ?? "";
    if (part !== STAR) {
      if (!rest.startsWith(part)) return null;
      rest = rest.slice(part.length);
      continue;
    }
    // A star behind a star is text like any other.
    at += 1;
    const next = pattern[at] ?? "";
    const end = next === "" ? rest.length : rest.indexOf(next);
    const star = rest.slice(0, end);
    if (end === -1 || star.includes(".")) return null;
    found.push(star);
    rest = rest.slice(end + next.length);
  }
  return rest === "" ? found : null;
}

export function expandGraphite(template: readonly TemplatePart[], found: readonly string[]): string {
  return template.map(({ text, star }) => (star === null ? text : (found[star] ?? text))).join("");
}
