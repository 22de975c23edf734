/**
 * A configuration document as a tree in which every value knows its place.
 *
 * It stands between YAML and the readers of sections: aliases are resolved, keys are unique strings, and scalars keep the
 * text that was written, so that `password: 0123` stays 0123. The converter of old files builds the same tree with the
 * places of the old file.
 */
import type { Place } from "./problem.ts";

export type ConfigNode =
  | { readonly kind: "nothing"; readonly place: Place }
  | TextNode
  | { readonly kind: "list"; readonly place: Place; readonly items: readonly ConfigNode[] }
  | MapNode;

export interface TextNode {
  readonly kind: "text";
  readonly place: Place;
  readonly text: string;
  /** Whether it stood there without quotes: only then may it be a number or true or false. */
  readonly plain: boolean;
}

export interface MapNode {
  readonly kind: "map";
  readonly place: Place;
  readonly entries: ReadonlyMap<string, MapEntry>;
}

export interface MapEntry {
  /** Where the key stands. */
  readonly key: Place;
  readonly value: ConfigNode;
}

/** The longest text from a file that is repeated in a message. */
const LONGEST_SHOWN = 60;

/** A value as messages show it after "got". */
export function shown(node: ConfigNode): string {
  return node.kind === "text" ? shownText(node.text, node.plain) : shownKind(node);
}

/** A value as messages show it where its text may be a secret. */
export function shownKind(node: ConfigNode): string {
  return { nothing: "nothing", text: "text", list: "a list", map: "a map" }[node.kind];
}

/** Text as messages show it: quoted if it was, or if blanks or control characters would mislead, and cut when long. */
export function shownText(text: string, plain = true): string {
  const cut = text.length > LONGEST_SHOWN ? `${text.slice(0, LONGEST_SHOWN)}…` : text;
  return plain && /^[!-~…]+$/.test(cut) ? cut : JSON.stringify(cut);
}

/**
 * The path of the value under a key. What follows the first unusual character of a key is left out: `password hunter2`,
 * where a colon is missing, is a key as well.
 */
export function pathOfKey(path: string, key: string): string {
  const word = /^[\w.-]{0,60}/.exec(key)?.[0] ?? "";
  const step = word === key && key !== "" ? key : `${word}…`;
  return path === "" ? step : `${path}.${step}`;
}

/** The path of an item of a list. */
export function pathOfItem(path: string, index: number): string {
  return `${path}[${index}]`;
}

/** Whether two values say the same, wherever they stand and however they are quoted. */
export function sameContent(a: ConfigNode, b: ConfigNode | null): boolean {
  if (a.kind === "text") return b?.kind === "text" && a.text === b.text;
  if (a.kind === "list") {
    if (b?.kind !== "list" || a.items.length !== b.items.length) return false;
    return a.items.every((item, index) => sameContent(item, b.items[index] ?? null));
  }
  if (a.kind === "nothing") return b?.kind === "nothing";
  if (b?.kind !== "map" || a.entries.size !== b.entries.size) return false;
  return [...a.entries].every(([key, { value }]) => sameContent(value, b.entries.get(key)?.value ?? null));
}

/** Text that is text even where it looks like a number. */
export function textNode(text: string, place: Place): TextNode {
  return { kind: "text", place, text, plain: false };
}

export function numberNode(value: number, place: Place): TextNode {
  return { kind: "text", place, text: String(value), plain: true };
}

export function listNode(items: readonly ConfigNode[], place: Place): ConfigNode {
  return { kind: "list", place, items };
}

/** A map whose keys have the places of their values. */
export function mapNode(values: Readonly<Record<string, ConfigNode>>, place: Place): MapNode {
  const entries = Object.entries(values).map(([key, value]) => [key, { key: value.place, value }] as const);
  return { kind: "map", place, entries: new Map(entries) };
}
