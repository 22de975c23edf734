/** Relabel rules as the YAML text that a peer and the gateway read alike. */

/** A scalar without quotes, whose reading is part of what is tested: 010, yes, null. */
export class Plain {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** Text stands in double quotes. */
export type FieldValue = string | Plain | readonly FieldValue[] | { readonly [key: string]: FieldValue };

/** The fields of a rule in the order in which they are written. */
export type WrittenRule = Readonly<Record<string, FieldValue>>;

/** A list of rules in block style, every line with this indent before it. */
export function rulesYaml(rules: readonly WrittenRule[], indent = ""): string {
  return rules.map((rule) => ruleYaml(rule, indent)).join("");
}

function ruleYaml(rule: WrittenRule, indent: string): string {
  const fields = Object.entries(rule).map(([name, value]) => `${name}: ${valueYaml(value)}\n`);
  if (fields.length === 0) return `${indent}- {}\n`;
  return fields.map((field, index) => `${indent}${index === 0 ? "- " : "  "}${field}`).join("");
}

function valueYaml(value: FieldValue): string {
  if (value instanceof Plain) return value.text;
  if (typeof value === "string") return quoted(value);
  if (isList(value)) return `[${value.map(valueYaml).join(", ")}]`;
  const members = Object.entries(value).map(([key, member]) => `${quoted(key)}: ${valueYaml(member)}`);
  return `{${members.join(", ")}}`;
}

function isList(value: FieldValue): value is readonly FieldValue[] {
  return Array.isArray(value);
}

/** JSON's escapes are YAML's; what YAML does not take as it stands is escaped besides. */
function quoted(text: string): string {
  return JSON.stringify(text).replaceAll(/[\u007f-\u00a0\u2028\u2029\ufeff\ufffe\uffff]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}
