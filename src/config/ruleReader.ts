/** Relabel rules where a configuration has them: before all routes, in a route, and at an upstream. */
import type { RelabelCheck, RelabelDialect, RelabelRule, RelabelRuleList } from "../relabel/options.ts";
import { relabelRules } from "./relabelSection.ts";
import type { RuleScope } from "./relabelSection.ts";
import type { Section } from "./section.ts";

/** Actions, of both dialects, that set the label they name; others only read it. */
const SETTING = new Set(["", "replace", "replace_all", "hashmod", "lowercase", "uppercase"]);

export class RuleReader {
  readonly #check: RelabelCheck;

  /** @param check what says whether the fields of a rule go together */
  constructor(check: RelabelCheck) {
    this.#check = check;
  }

  /** The rules before all routes; none when the key is not there. */
  readGlobal(section: Section, key: string): RelabelRuleList {
    return this.#read(section, key, "prometheus", "global");
  }

  /**
   * The rules of a route or an upstream; none when the key is not there.
   *
   * @param dialect null when the file has a wrong one: then nothing can be said of the rules, and they are not looked at
   */
  read(section: Section, key: string, dialect: RelabelDialect | null): RelabelRuleList {
    if (dialect !== null) return this.#read(section, key, dialect, "route");
    section.node(key);
    return { dialect: "prometheus", rules: [] };
  }

  #read(section: Section, key: string, dialect: RelabelDialect, scope: RuleScope): RelabelRuleList {
    return section.optional(key, relabelRules(dialect, this.#check, scope), { dialect, rules: [] });
  }
}

/** Warns of rules that set the task label, as far as that shows without a series. */
export function warnOfOverwritten(
  route: Section,
  key: string,
  { rules }: RelabelRuleList,
  taskLabel: string,
): void {
  const list = route.node(key);
  // With fewer rules than items some are wrong, and the numbers of the others are not known.
  if (list?.kind !== "list" || list.items.length !== rules.length) return;
  for (const [index, item] of list.items.entries()) {
    const target = item.kind === "map" ? item.entries.get("target_label")?.value : undefined;
    const rule = rules[index];
    if (target === undefined || rule === undefined || !sets(rule, taskLabel)) continue;
    const message = `rule ${index + 1}: ${taskLabel} is the task label of this route, which overwrites what the rule sets`;
    route.problems.warning(target.place, message);
  }
}

function sets({ action, targetLabel }: RelabelRule, label: string): boolean {
  return targetLabel === label && SETTING.has((action ?? "replace").toLowerCase());
}
