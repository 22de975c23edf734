/** Lists of names in lines for a person. */

const MAX_SHOWN = 10;

/** The first ones, and how many more there are. */
export function shortened(names: readonly string[]): string {
  const more = names.length - MAX_SHOWN;
  return names.slice(0, MAX_SHOWN).join(", ") + (more > 0 ? ` and ${more} more` : "");
}
