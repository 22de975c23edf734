/**
 * YAML text to a tree of ConfigNodes: aliases and merge keys (`<<`) resolved, keys unique.
 *
 * Aliases are copied out, each copy with the path of its use and the line of its text. How much they may copy is
 * bounded, since a file of a few lines can stand for billions of values.
 */
import { isAlias, isMap, isScalar, isSeq, visit } from "yaml";
import type { Document, Node, YAMLMap } from "yaml";
import { pathOfItem, pathOfKey } from "./node.ts";
import type { ConfigNode, MapEntry, MapNode } from "./node.ts";
import type { Place, ProblemList } from "./problem.ts";
import { parseYaml } from "./yamlSyntax.ts";
import type { Lines } from "./yamlSyntax.ts";

const MAX_VALUES_FROM_ALIASES = 100_000;

/** Aliases inside what an alias stands for, and so on: copying recurses. */
const MAX_ALIAS_DEPTH = 16;

/** Plain scalars that YAML takes for null. */
const NULLS = new Set(["", "~", "null", "Null", "NULL"]);

/** The top of the file, or null when it is no YAML map; what is wrong is then in `problems`. An empty file is an empty map. */
export function readDocument(text: string, problems: ProblemList): MapNode | null {
  const top = readTree(text, problems);
  if (top === null) return null;
  if (top.kind === "map") return top;
  if (top.kind === "nothing") return { kind: "map", place: top.place, entries: new Map() };
  problems.error(
    top.place,
    `want keys and values at the top of the file; got ${top.kind === "list" ? "a list" : "text"}`,
  );
  return null;
}

/** As readDocument(), for files whose top may be anything; an empty file is nothing. */
export function readTree(text: string, problems: ProblemList): ConfigNode | null {
  const parsed = parseYaml(text, problems);
  return parsed === null ? null : new TreeBuilder(parsed.document, parsed.lines, problems).build();
}

class TreeBuilder {
  readonly #document: Document;
  readonly #lines: Lines;
  readonly #problems: ProblemList;
  readonly #targets = new Map<Node, Node>();
  /** Anchored values that are being copied, so that one inside itself is noticed. */
  readonly #open = new Set<Node>();
  #fromAliases = 0;

  constructor(document: Document, lines: Lines, problems: ProblemList) {
    this.#document = document;
    this.#lines = lines;
    this.#problems = problems;
    this.#bindAliases();
  }

  /** @returns null when aliases stand for too much: what there is of the tree would only lead to further problems */
  build(): ConfigNode | null {
    const top = this.#node(this.#document.contents, this.#lines.place(0));
    return this.#fromAliases > MAX_VALUES_FROM_ALIASES ? null : top;
  }

  /** An alias means the last anchor of its name before it. */
  #bindAliases(): void {
    const anchors = new Map<string, Node>();
    visit(this.#document, {
      Alias: (_key, alias) => {
        const target = anchors.get(alias.source);
        if (target !== undefined) this.#targets.set(alias, target);
      },
      Value: (_key, node) => {
        if (node.anchor !== undefined) anchors.set(node.anchor, node);
      },
    });
  }

  /** @param absent where to say that nothing is, for a node that the syntax tree leaves out */
  #node(node: unknown, absent: Place): ConfigNode {
    if (isAlias(node)) return this.#alias(node, absent.path);
    if (this.#open.size > 0 && !this.#mayCopy(absent)) return { kind: "nothing", place: absent };
    if (isScalar(node)) {
      const place = this.#place(node, absent.path);
      const text = node.source ?? "";
      const plain = node.type === "PLAIN";
      const tagged = node.tag !== undefined;
      if (plain && !tagged && NULLS.has(text)) return { kind: "nothing", place };
      return { kind: "text", place, text, plain: plain && !tagged };
    }
    if (isSeq(node)) {
      const items = node.items.map((item, index) => {
        const path = pathOfItem(absent.path, index);
        return this.#node(item, { ...this.#place(node, path), path });
      });
      return { kind: "list", place: this.#place(node, absent.path), items };
    }
    if (isMap(node)) return this.#map(node, absent.path);
    return { kind: "nothing", place: absent };
  }

  #map(map: YAMLMap, path: string): MapNode {
    const entries = new Map<string, MapEntry>();
    const merged: ConfigNode[] = [];
    for (const pair of map.items) {
      const keyNode = pair.key;
      if (!isScalar(keyNode)) {
        this.#problems.error(this.#place(keyNode, path), "want a plain key; got a list, a map or an alias");
        continue;
      }
      const name = keyNode.source ?? "";
      const key = this.#place(keyNode, pathOfKey(path, name));
      const earlier = entries.get(name);
      if (earlier !== undefined) {
        this.#problems.error(key, `the same key stands at line ${earlier.key.line} already`);
      } else if (name === "<<" && keyNode.type === "PLAIN") {
        merged.push(this.#node(pair.value, { ...key, path }));
      } else {
        entries.set(name, { key, value: this.#node(pair.value, key) });
      }
    }
    for (const source of merged) this.#merge(source, entries);
    return { kind: "map", place: this.#place(map, path), entries };
  }

  /** Adds what `<<` brings and the map does not have itself; of several sources the first wins. */
  #merge(source: ConfigNode, entries: Map<string, MapEntry>): void {
    const sources = source.kind === "list" ? source.items : [source];
    for (const from of sources) {
      if (from.kind === "nothing") continue;
      if (from.kind !== "map") {
        this.#problems.error(from.place, "want an alias of a map, or a list of such, after <<");
        continue;
      }
      for (const [name, entry] of from.entries) if (!entries.has(name)) entries.set(name, entry);
    }
  }

  #alias(alias: Node, path: string): ConfigNode {
    const place = this.#place(alias, path);
    const target = this.#targets.get(alias);
    if (target === undefined) {
      this.#problems.error(place, "an alias without an anchor of its name before it");
      return { kind: "nothing", place };
    }
    if (this.#open.has(target) || this.#open.size === MAX_ALIAS_DEPTH) {
      const what = this.#open.has(target)
        ? "inside the value that it stands for"
        : "of an alias too many times over";
      this.#problems.error(place, `an alias ${what}`);
      return { kind: "nothing", place };
    }
    this.#open.add(target);
    const copy = this.#node(target, place);
    this.#open.delete(target);
    return copy;
  }

  #mayCopy(place: Place): boolean {
    this.#fromAliases += 1;
    if (this.#fromAliases === MAX_VALUES_FROM_ALIASES + 1) {
      this.#problems.error(place, `aliases stand for more than ${MAX_VALUES_FROM_ALIASES} values by here`);
    }
    return this.#fromAliases <= MAX_VALUES_FROM_ALIASES;
  }

  #place(node: unknown, path: string): Place {
    const range = (node as Node | null)?.range;
    return this.#lines.place(range?.[0] ?? 0, path);
  }
}
