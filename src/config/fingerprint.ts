/** What tells one configuration from another. */
import { createHash } from "node:crypto";
import type { Config } from "./config.ts";

/** Where secrets are, and where they may be: in addresses and headers. */
const SECRET_KEYS: ReadonlySet<string> = new Set(["auth", "headers", "tls", "token", "url"]);
const HASH_CHARACTERS = 16;

/** Equal for parts of configurations that are equal, and for no others. It holds secrets. */
export function fingerprint(part: unknown): string {
  return JSON.stringify(part, (_key, value: unknown) => plainOf(value));
}

/**
 * A hash of all that a configuration says but secrets, addresses and the gateway's own place (where it listens, and its spool's
 * folder), for everybody to see: gateways that agree on it place and deliver alike.
 */
export function publicHash(config: Config): string {
  const shared = { ...config, listen: null, admin: null, spool: { ...config.spool, path: null } };
  const shown = JSON.stringify(shared, (key, value: unknown) =>
    SECRET_KEYS.has(key) ? null : plainOf(value),
  );
  return createHash("sha256").update(shown).digest("hex").slice(0, HASH_CHARACTERS);
}

/** Maps say nothing in JSON, and integers of any size cannot. */
function plainOf(value: unknown): unknown {
  if (typeof value === "bigint") return `${value}n`;
  return value instanceof Map ? [...(value as ReadonlyMap<unknown, unknown>)] : value;
}
