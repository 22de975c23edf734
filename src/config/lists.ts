/** Readers of lists. In all of them `what` names the items in the plural, for messages. */
import { shown, shownKind } from "./node.ts";
import { wrong } from "./scalars.ts";
import type { Reader } from "./section.ts";

export function listOf<T>(read: Reader<T>, what: string): Reader<readonly T[]> {
  return (node, problems) => {
    if (node.kind !== "list") return wrong(node, problems, `a list of ${what}`, shownKind(node));
    return node.items.map((item) => read(item, problems)).filter((item) => item !== null);
  };
}

/** A list in which nothing stands twice. */
export function setOf<T>(read: Reader<T>, what: string): Reader<readonly T[]> {
  return (list, problems) => {
    const lines = new Map<T, number>();
    const readNew: Reader<T> = (node) => {
      const value = read(node, problems);
      if (value === null) return null;
      const line = lines.get(value);
      if (line !== undefined)
        return wrong(node, problems, "each once", `${shown(node)} again, as at line ${line}`);
      lines.set(value, node.place.line);
      return value;
    };
    return listOf(readNew, what)(list, problems);
  };
}

/** Refuses an empty list. */
export function someOf<T>(read: Reader<readonly T[]>, what: string): Reader<readonly T[]> {
  return (node, problems) => {
    if (node.kind !== "list" || node.items.length > 0) return read(node, problems);
    return wrong(node, problems, `at least one of the ${what}`, "an empty list");
  };
}
