/**
 * Which upstreams are one vmagent, as far as the configuration tells.
 *
 * A vmagent takes remote write at several paths, so all of these lead to one at an address. Any other path is for a proxy to
 * understand, which may take two paths to one vmagent or to two, and two users as well: that is not known. Different addresses are
 * taken to be different vmagents.
 */
import type { RouteConfig } from "../config/config.ts";

export interface Vmagent {
  /** Host and port: two vmagents for certain where these are different. */
  readonly address: string;
  /** One vmagent for certain where these are equal. */
  readonly id: string;
}

/** Where vmagent 1.145 takes remote write; it reads several slashes in a row as one. */
const WRITE_PATHS: ReadonlySet<string> = new Set([
  "/api/v1/write",
  "/api/v1/push",
  "/prometheus/api/v1/write",
  "/prometheus/api/v1/push",
]);

type Reached = Pick<RouteConfig["upstreams"][number], "url" | "auth" | "headers">;

export function vmagentAt({ url, auth, headers }: Reached): Vmagent {
  const { protocol, hostname, port, pathname, search } = url;
  const defaultPort = protocol === "https:" ? "443" : "80";
  const host = hostname.replace(/\.$/, "");
  const address = `${host}:${port === "" ? defaultPort : port}`;
  const path = pathname.replaceAll(/\/+/g, "/");
  const place = WRITE_PATHS.has(path) ? "" : `${path}${search}`;
  return { address, id: JSON.stringify([address, place, auth, headers]) };
}

export function areTwo(one: Vmagent, other: Vmagent): boolean {
  return one.address !== other.address;
}

/** Whether all are one for certain. */
export function areOne(vmagents: readonly Vmagent[]): boolean {
  return new Set(vmagents.map(({ id }) => id)).size === 1;
}
