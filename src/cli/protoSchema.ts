/**
 * The schemas in proto/, loaded at run time by protobufjs.
 *
 * They are what is slow and trusted: tools and tests decode with them, the gateway itself never does.
 */
import { readFileSync } from "node:fs";
import protobuf from "protobufjs";

/** From src/cli/ and, in the built package, from dist/src/cli/. */
const PROTO_FOLDER = new URL("../../proto/", import.meta.url);

/**
 * How doubles and strings are decoded: `natural` as JavaScript numbers and strings, `raw` as what they are on the wire,
 * eight bytes and bytes. A number does not keep the bits of a stale marker, nor a string those of invalid UTF-8.
 */
export type ScalarForm = "natural" | "raw";

/**
 * Loads one schema; fields keep the names that they have in it.
 *
 * @param file name in proto/, e.g. `remote_write_v1.proto`
 * @throws the system's error when the file is not there, protobufjs' when it is no schema
 */
export function loadSchema(file: string, scalars: ScalarForm): protobuf.Root {
  const source = readFileSync(new URL(file, PROTO_FOLDER), "utf8");
  const root = new protobuf.Root();
  protobuf.parse(scalars === "raw" ? withRawScalars(source) : source, root, { keepCase: true });
  root.resolveAll();
  return root;
}

/** On the wire a double is a fixed64 and a string is bytes, so this is the same schema for the same messages. */
function withRawScalars(source: string): string {
  return source
    .replace(/^(\s*(?:repeated )?)double /gm, "$1fixed64 ")
    .replace(/^(\s*(?:repeated )?)string /gm, "$1bytes ");
}
