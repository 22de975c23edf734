/** Random texts of the characters that engines, case mappings and encodings treat in more than one way. */
import type { Random } from "../fuzz/random.ts";

const COMMON = Array.from("abcABC_1270-.:/");
const SPECIAL = [
  ...Array.from("kKsSéÉßẞᾳᾂıİiIΣσςǆǅǄμµΐﬀﬃⅷⅧⓐⒶᏸᏰꭰꜲꜳÿŸ"),
  ...Array.from("\u212a\u017f\u0301\u0345\u00a0\u2028\u200b\u3000\ufeff\u0085\u007f"),
  ...Array.from(" ;,|\"'`\\$%{}()[]*+?^#&<>=~!@\n\r\t\v\f"),
  ...Array.from("\uff5e\ue000\ufffd😀𝒳𐐨𐐀\u{10ffff}٣²½Ⅳ中"),
];

/** Mostly letters, digits and marks of common use; now and then, or always when `special`, others. */
export function randomCharacter(random: Random, special = false): string {
  const pool = special || random.once(4) ? SPECIAL : COMMON;
  return pool[random.below(pool.length)] ?? "";
}

export function randomText(random: Random, maxCharacters: number): string {
  const special = random.once(6);
  return Array.from({ length: random.below(maxCharacters + 1) }, () => randomCharacter(random, special)).join(
    "",
  );
}
