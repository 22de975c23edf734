/** The address to listen on, as `listen` spells it. */
import { isIPv4, isIPv6 } from "node:net";
import type { ListenAddress } from "../receive/options.ts";
import { wrong } from "./scalars.ts";
import type { Reader } from "./section.ts";

export const listenAddress: Reader<ListenAddress> = (node, problems) => {
  const address = node.kind === "text" ? parseListenAddress(node.text) : null;
  if (address !== null) return address;
  return wrong(node, problems, "an address as 127.0.0.1:8080, [::1]:8080, or :8080 for all addresses");
};

/**
 * Host and port of `host:port`, with brackets around IPv6.
 *
 * @returns an empty host for all addresses, IPv6 as well where the system has it; null when it is no address
 */
export function parseListenAddress(written: string): ListenAddress | null {
  const match = /^(?:\[([^\]]+)\]|([^:[\]]*)):(\d{1,5})$/.exec(written);
  if (match === null) return null;
  const [, bracketed, open = "", digits] = match;
  const port = Number(digits);
  if (port > 65535) return null;
  if (bracketed !== undefined) return isIPv6(bracketed) ? { host: bracketed, port } : null;
  return open === "" || isIPv4(open) || isHostName(open) ? { host: open, port } : null;
}

/** Digits and dots alone would be a mistyped IPv4 address. */
function isHostName(written: string): boolean {
  return /^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$/.test(written) && !/^[\d.]+$/.test(written);
}
