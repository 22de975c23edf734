/** Applies a JSON patch: as much of RFC 6902 as our kustomize folders use. */

export type PatchOperation =
  | { readonly op: "add" | "replace" | "test"; readonly path: string; readonly value: unknown }
  | { readonly op: "remove"; readonly path: string };

type Node = Record<string, unknown>;

/** @returns a changed copy */
export function applyPatch<T>(document: T, operations: readonly PatchOperation[]): T {
  const copy = structuredClone(document);
  for (const operation of operations) apply(copy as Node, operation);
  return copy;
}

function apply(document: Node, operation: PatchOperation): void {
  const keys = operation.path.split("/").slice(1);
  const last = keys.pop() ?? "";
  const parent = keys.reduce<unknown>((node, key) => (node as Node | undefined)?.[key], document);
  if (typeof parent !== "object" || parent === null) throw new Error(`nothing is at ${operation.path}`);
  const holder = parent as Node;
  if (operation.op !== "add" && !(last in holder)) throw new Error(`nothing is at ${operation.path}`);
  switch (operation.op) {
    case "add":
      if (Array.isArray(parent)) throw new Error(`cannot add to a list: ${operation.path}`);
      holder[last] = operation.value;
      return;
    case "replace":
      holder[last] = operation.value;
      return;
    case "remove":
      if (Array.isArray(parent)) parent.splice(Number(last), 1);
      else Reflect.deleteProperty(holder, last);
      return;
    case "test":
      if (JSON.stringify(holder[last]) !== JSON.stringify(operation.value)) {
        throw new Error(`${operation.path} is ${JSON.stringify(holder[last])}`);
      }
  }
}
