/** Writes nodes of a configuration as YAML, each value as it was written. */
import { Document } from "yaml";
import type { ScalarTag } from "yaml";
import type { ConfigNode } from "../config/node.ts";

/** The lines of a document. @param comment above it */
export function yamlLines(node: ConfigNode, comment: string): string[] {
  const yaml = new Document(plainValue(node), { aliasDuplicateObjects: false, customTags: [WRITTEN_PLAIN] });
  yaml.commentBefore = ` ${comment}`;
  return yaml.toString({ lineWidth: 0 }).trimEnd().split("\n");
}

function plainValue(node: ConfigNode): unknown {
  switch (node.kind) {
    case "nothing":
      return null;
    case "text":
      return node.plain && /^([-+]?\.?\d[\w.+-]*|true|false)$/i.test(node.text)
        ? new WrittenPlain(node.text)
        : node.text;
    case "list":
      return node.items.map(plainValue);
    case "map":
      return Object.fromEntries([...node.entries].map(([key, entry]) => [key, plainValue(entry.value)]));
  }
}

/**
 * What stands in a file without quotes as numbers, true and false do: quotes would make text of it, and 0x10, 010 and 1.0 would
 * be spelled otherwise as numbers.
 */
class WrittenPlain {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** Writes it without quotes, and without a tag, which is what `default` means. */
const WRITTEN_PLAIN: ScalarTag = {
  tag: "!plain",
  default: true,
  identify: (value) => value instanceof WrittenPlain,
  resolve: (text) => new WrittenPlain(text),
  stringify: ({ value }) => (value as WrittenPlain).text,
};
