/**
 * Texts that match a regular expression, for series that rules select. It knows the plainest part of the syntax; for more
 * there is no text, and a text may fail to match: whoever uses it asks the rules themselves.
 */

/**
 * @param variant others give other texts where the expression leaves a choice: the first choice is another for each of eight in
 *                a row, the second for each eight such rows, and so on
 * @returns null when there is none
 */
export function sampleText(regex: string, variant: number): string | null {
  const reader = new Sampler(regex.replace(/^\^/, "").replace(/\$$/, ""), variant);
  return reader.read();
}

const CHOICES = 8;

class Sampler {
  readonly #regex: string;
  /** What is left of it for the choices that come. */
  #variant: number;
  #at = 0;

  constructor(regex: string, variant: number) {
    this.#regex = regex;
    this.#variant = variant;
  }

  read(): string | null {
    const text = this.#alternatives();
    return this.#at === this.#regex.length ? text : null;
  }

  #alternatives(): string | null {
    const choices = [this.#sequence()];
    while (this.#regex[this.#at] === "|") {
      this.#at += 1;
      choices.push(this.#sequence());
    }
    return choices.length === 1 ? (choices[0] ?? null) : (choices[this.#choose() % choices.length] ?? null);
  }

  #sequence(): string | null {
    let text: string | null = "";
    while (this.#at < this.#regex.length && !/[|)]/.test(this.#regex.charAt(this.#at))) {
      const atom = this.#atom();
      if (atom === null) return this.#giveUp();
      text += this.#repeated(atom);
    }
    return text;
  }

  /** What is repeated may be there once, and what stands for many characters is told apart by the variant. */
  #repeated({ text, isWide }: Atom): string {
    const quantifier = /^(?:[*+?]|\{\d+(?:,\d*)?\})\??/.exec(this.#regex.slice(this.#at))?.[0] ?? "";
    this.#at += quantifier.length;
    const count = Number(/^\{(\d+)/.exec(quantifier)?.[1] ?? 1);
    if (isWide && /^[*+]/.test(quantifier)) return `${text}${this.#choose()}`;
    return text.repeat(count);
  }

  #atom(): Atom | null {
    const group = /^\((?:\?:|\?P?<\w+>)?(?!\?)/.exec(this.#regex.slice(this.#at));
    if (group !== null) return this.#group(group[0].length);
    const set = /^\[(\^?)([^\]\\][^\]]*)\]/.exec(this.#regex.slice(this.#at));
    if (set !== null) return this.#set(set[0].length, set[1] === "^", set[2] ?? "");
    const escape = /^\\(.)/.exec(this.#regex.slice(this.#at));
    if (escape !== null) return this.#escaped(escape[1] ?? "");
    const character = this.#regex.charAt(this.#at);
    if (/[*+?{}()[\]^$]/.test(character)) return null;
    this.#at += 1;
    return character === "." ? { text: "v", isWide: true } : { text: character, isWide: false };
  }

  #group(start: number): Atom | null {
    this.#at += start;
    const text = this.#alternatives();
    if (text === null || this.#regex[this.#at] !== ")") return null;
    this.#at += 1;
    return { text, isWide: false };
  }

  #set(length: number, isOfOthers: boolean, members: string): Atom {
    this.#at += length;
    if (isOfOthers) return { text: "z", isWide: true };
    // Digits may follow where letters may, mostly.
    if (/[\\-]/.test(members)) return { text: members.charAt(0), isWide: /[0-9]-[0-9]/.test(members) };
    return { text: members.charAt(this.#choose() % members.length), isWide: false };
  }

  #escaped(letter: string): Atom | null {
    const known: Readonly<Record<string, Atom>> = {
      d: { text: "1", isWide: true },
      w: { text: "w", isWide: true },
    };
    const atom = known[letter] ?? (/\w/.test(letter) ? null : { text: letter, isWide: false });
    if (atom !== null) this.#at += 2;
    return atom;
  }

  #choose(): number {
    const chosen = this.#variant % CHOICES;
    this.#variant = Math.floor(this.#variant / CHOICES);
    return chosen;
  }

  #giveUp(): null {
    this.#at = this.#regex.length;
    return null;
  }
}

interface Atom {
  readonly text: string;
  /** Whether it stands for nearly any character, digits among them. */
  readonly isWide: boolean;
}
