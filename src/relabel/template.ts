/**
 * `$1`, `${1}`, `$name` and `${name}` in replacements and targets, as Go's regexp.Expand reads them.
 *
 * A name without braces is as long as it can be: `$1_x` is the group "1_x", which is rarely meant and mostly empty. `$$` is a
 * dollar sign, and so is one that no name follows.
 */

/** The text of each group, the whole match first; null for a group that took no part. */
export type Groups = readonly (string | null)[];

/** Text, or the numbers of the groups of which the first that took part is put there. */
type Part = string | readonly number[];

export type Template = readonly Part[];

const REFERENCE = /\$(?:(\$)|\{([\p{L}\p{Nd}_]+)\}|([\p{L}\p{Nd}_]+))/gu;
const GROUP_NUMBER = /^(?:0|[1-9][0-9]{0,8})$/;

/** @param groupNames names of the groups by number, empty for those without; names may repeat */
export function parseTemplate(text: string, groupNames: readonly string[]): Template {
  const parts: Part[] = [];
  let end = 0;
  for (const { 0: reference, 1: dollar, 2: braced, 3: bare, index } of text.matchAll(REFERENCE)) {
    parts.push(text.slice(end, index), dollar ?? groupsNamed(braced ?? bare ?? "", groupNames));
    end = index + reference.length;
  }
  parts.push(text.slice(end));
  return parts.filter((part) => part !== "");
}

function groupsNamed(name: string, groupNames: readonly string[]): number[] {
  if (GROUP_NUMBER.test(name)) return [Number(name)];
  return groupNames.flatMap((groupName, number) => (groupName === name ? [number] : []));
}

/** Whether it says the same whatever the groups. */
export function isConstant(template: Template): boolean {
  return template.every((part) => typeof part === "string");
}

export function expand(template: Template, groups: Groups): string {
  let text = "";
  for (const part of template) {
    if (typeof part === "string") text += part;
    else text += groups[part.find((number) => typeof groups[number] === "string") ?? -1] ?? "";
  }
  return text;
}
