/**
 * Reads one map of the configuration key by key.
 *
 * Every key that a reader asks for is known; what is left over at the end is reported. A wrong value is reported and its
 * default goes on in its place, so that all problems of a file come to light at once.
 */
import { pathOfKey, shownKind } from "./node.ts";
import type { ConfigNode, MapEntry, MapNode } from "./node.ts";
import type { Place, ProblemList } from "./problem.ts";
import { nearest } from "./suggest.ts";

/** Turns a value into what it means; null when it is wrong, which it has then reported. */
export type Reader<T> = (node: ConfigNode, problems: ProblemList) => T | null;

export class Section {
  readonly place: Place;
  readonly problems: ProblemList;
  readonly #entries: ReadonlyMap<string, MapEntry>;
  readonly #known: string[] = [];

  constructor(map: MapNode, problems: ProblemList) {
    this.place = map.place;
    this.problems = problems;
    this.#entries = map.entries;
  }

  /** The value of a key; an explicit null is as good as none. */
  node(key: string): ConfigNode | null {
    if (!this.#known.includes(key)) this.#known.push(key);
    const value = this.#entries.get(key)?.value;
    return value === undefined || value.kind === "nothing" ? null : value;
  }

  has(key: string): boolean {
    return this.node(key) !== null;
  }

  /** Whether the key stands there with nothing behind it. */
  isEmpty(key: string): boolean {
    return this.#entries.get(key)?.value.kind === "nothing";
  }

  /** Where to report what is wrong with the value of a key, given or not. */
  placeOf(key: string): Place {
    return this.#entries.get(key)?.value.place ?? { ...this.place, path: pathOfKey(this.place.path, key) };
  }

  optional<T, F>(key: string, read: Reader<T>, fallback: F): T | F {
    const node = this.node(key);
    return node === null ? fallback : (read(node, this.problems) ?? fallback);
  }

  /** @param what what a person should put there */
  required<T>(key: string, read: Reader<T>, what: string): T | null {
    const node = this.node(key);
    if (node !== null) return read(node, this.problems);
    this.problems.error(this.placeOf(key), `missing; want ${what}`);
    return null;
  }

  /** Reads the map under a key; an absent one is read as an empty one, which gives its defaults. */
  section<T>(key: string, read: (section: Section) => T): T {
    const given = this.node(key);
    const empty: MapNode = { kind: "map", place: this.placeOf(key), entries: new Map() };
    return readMap(given === null ? empty : (asMap(given, this.problems) ?? empty), this.problems, read);
  }

  /** The keys as they stand in the file, for maps whose keys are names and not options. */
  *entries(): Iterable<[string, MapEntry]> {
    for (const [key, entry] of this.#entries) {
      this.#known.push(key);
      yield [key, entry];
    }
  }

  reportUnknown(): void {
    const known = new Set(this.#known);
    for (const [key, entry] of this.#entries) {
      if (known.has(key)) continue;
      const meant = nearest(key, this.#known);
      const hint = meant === null ? `want one of: ${this.#known.join(", ")}` : `did you mean ${meant}?`;
      this.problems.error(entry.key, `unknown key; ${hint}`);
    }
  }
}

/** A reader of maps. */
export function sectionOf<T>(read: (section: Section) => T | null): Reader<T> {
  return (node, problems) => {
    const map = asMap(node, problems);
    return map === null ? null : readMap(map, problems, read);
  };
}

function readMap<T>(map: MapNode, problems: ProblemList, read: (section: Section) => T): T {
  const section = new Section(map, problems);
  const value = read(section);
  section.reportUnknown();
  return value;
}

function asMap(node: ConfigNode, problems: ProblemList): MapNode | null {
  if (node.kind === "map") return node;
  problems.error(node.place, `want keys and values; got ${shownKind(node)}`);
  return null;
}
