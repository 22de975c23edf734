/** Sets of label names that are finite, or everything but finitely many: what a key hashes, what a group keeps. */

export type LabelNames =
  | { readonly kind: "only"; readonly names: ReadonlySet<string> }
  | { readonly kind: "all_but"; readonly names: ReadonlySet<string> };

export function only(names: Iterable<string>): LabelNames {
  return { kind: "only", names: new Set(names) };
}

export function allBut(names: Iterable<string>): LabelNames {
  return { kind: "all_but", names: new Set(names) };
}

export const NO_LABEL = only([]);
export const EVERY_LABEL = allBut([]);

export function includes({ kind, names }: LabelNames, name: string): boolean {
  return names.has(name) === (kind === "only");
}

export function union(a: LabelNames, b: LabelNames): LabelNames {
  return complement(intersection(complement(a), complement(b)));
}

export function intersection(a: LabelNames, b: LabelNames): LabelNames {
  if (a.kind === "only") return only([...a.names].filter((name) => includes(b, name)));
  if (b.kind === "only") return intersection(b, a);
  return allBut([...a.names, ...b.names]);
}

/** What is in `a` and not in `b`. */
export function difference(a: LabelNames, b: LabelNames): LabelNames {
  return intersection(a, complement(b));
}

/** There are endless names, so what leaves out finitely many has some. */
export function isEmpty({ kind, names }: LabelNames): boolean {
  return kind === "only" && names.size === 0;
}

export function isWithin(a: LabelNames, b: LabelNames): boolean {
  return isEmpty(difference(a, b));
}

/** For a person, e.g. `every label but env, job`. */
export function namesText({ kind, names }: LabelNames): string {
  const list = [...names].join(", ");
  if (kind === "only") return names.size === 0 ? "no label" : list;
  return names.size === 0 ? "every label" : `every label but ${list}`;
}

function complement({ kind, names }: LabelNames): LabelNames {
  return { kind: kind === "only" ? "all_but" : "only", names };
}
