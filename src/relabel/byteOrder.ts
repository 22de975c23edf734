/** The order of strings by their UTF-8 bytes, which is that of their code points. */

const FIRST_SURROGATE = 0xd800;
const LAST_SURROGATE = 0xdfff;

/** Compares for sort(). JavaScript's own order differs: it puts U+1F600, as surrogates, before U+FF5E. */
export function compareBytewise(a: string, b: string): number {
  const shorter = Math.min(a.length, b.length);
  for (let i = 0; i < shorter; i++) {
    const unitA = a.charCodeAt(i);
    const unitB = b.charCodeAt(i);
    if (unitA === unitB) continue;
    // Surrogates stand for code points above all that are one unit.
    const astral = Number(isSurrogate(unitA)) - Number(isSurrogate(unitB));
    return astral === 0 ? unitA - unitB : astral;
  }
  return a.length - b.length;
}

function isSurrogate(unit: number): boolean {
  return unit >= FIRST_SURROGATE && unit <= LAST_SURROGATE;
}
