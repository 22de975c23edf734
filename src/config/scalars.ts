/** Readers of single values: text, names, numbers, and words of a fixed set. */
import { shown, shownKind } from "./node.ts";
import type { ConfigNode } from "./node.ts";
import type { ProblemList } from "./problem.ts";
import type { Reader } from "./section.ts";

/** Bounds, both included. */
export interface Range {
  readonly min: number;
  readonly max?: number;
  /** Why the largest value is what it is. */
  readonly because?: string;
}

/** Text that is not empty. Scalars of every look are text where text is wanted: `name: 1` is "1". */
export const text: Reader<string> = (node, problems) => {
  if (node.kind === "text" && node.text !== "") return node.text;
  return wrong(node, problems, "some text");
};

/** As text, but may be empty, and what was got is never shown. */
export const secretText: Reader<string> = (node, problems) => {
  return node.kind === "text" ? node.text : wrong(node, problems, "text", shownKind(node));
};

/** A name of ours, as it appears in metrics, logs and messages. */
export const name: Reader<string> = (node, problems) => {
  const value = text(node, problems);
  if (value === null) return null;
  // Control characters would break log lines; blanks at the ends are invisible.
  if (!/\p{Cc}/u.test(value) && value.trim() === value && value.length <= 200) return value;
  return wrong(
    node,
    problems,
    "at most 200 characters, none of them a control character, no blank at the ends",
  );
};

/** A label that the gateway sets itself. */
export const ownLabel: Reader<string> = (node, problems) => {
  const label = text(node, problems);
  if (label === null) return null;
  if (label === "__name__")
    return wrong(node, problems, "a label of its own, since __name__ is the metric's name");
  if (/^[a-zA-Z_][a-zA-Z0-9_]*$/.test(label)) return label;
  return wrong(node, problems, "a label name of letters, digits and _, not beginning with a digit");
};

export const flag: Reader<boolean> = (node, problems) => {
  if (node.kind === "text" && node.plain && /^(true|false)$/i.test(node.text))
    return /^true$/i.test(node.text);
  return wrong(node, problems, "true or false");
};

export function integer(range: Range): Reader<number> {
  return (node, problems) => {
    if (node.kind !== "text" || !node.plain || !/^[-+]?\d{1,15}$/.test(node.text)) {
      return wrong(node, problems, "a whole number");
    }
    return within(Number(node.text), range, node, problems);
  };
}

/** Digits with or without a fraction and an exponent; what range it may have is for its user to say. */
export const number: Reader<number> = (node, problems) => {
  if (node.kind === "text" && node.plain && /^[-+]?(\d+(\.\d*)?|\.\d+)(e[-+]?\d+)?$/i.test(node.text))
    return Number(node.text);
  return wrong(node, problems, "a number");
};

/** A part of something: from 0 to 1. */
export const ratio: Reader<number> = (node, problems) => {
  const value = number(node, problems);
  return value === null ? null : within(value, { min: 0, max: 1 }, node, problems);
};

export function oneOf<const T extends string>(...values: readonly T[]): Reader<T> {
  return (node, problems) => {
    const found = values.find((value) => node.kind === "text" && node.text === value);
    return found ?? wrong(node, problems, values.join(", ").replace(/, (?=[^,]*$)/, " or "));
  };
}

/** Reports what was wanted and got. */
export function wrong(node: ConfigNode, problems: ProblemList, want: string, got = shown(node)): null {
  problems.error(node.place, `want ${want}; got ${got}`);
  return null;
}

/** The value when it is within the range, else null and a problem, in which `format` writes the bounds. */
export function within(
  value: number,
  { min, max, because }: Range,
  node: ConfigNode,
  problems: ProblemList,
  format: (value: number) => string = String,
): number | null {
  if (value < min) return wrong(node, problems, `at least ${format(min)}`);
  if (max === undefined || value <= max) return value;
  return wrong(node, problems, `at most ${format(max)}${because === undefined ? "" : `, ${because}`}`);
}
