/**
 * Tells requests that a web page may have made: a browser sends them from a machine that reaches the admin listener, for a page
 * whose owner does not.
 */
import type { IncomingHttpHeaders } from "node:http";
import { isIP } from "node:net";

/** Names of one label, and those below a machine, a cluster or a network: no server of the public DNS gives them an address. */
const PRIVATE_NAME = /^[^.]+\.?$|\.(?:localhost|svc|cluster\.local|internal)\.?$/;

/**
 * What is wrong with a request that brings no token; null unless a page may have made it.
 *
 * Browsers say when a page asks another origin than its own. A page whose owner lets its name lead to this listener once it is
 * loaded (DNS rebinding) asks its own origin, and over plain HTTP its GETs look like those of any tool. But they have the
 * page's name as Host. So that has to be one which no page can have. Those who ask by an address, by localhost, as through
 * kubectl port-forward, or by the name of a Service or a container do not notice.
 *
 * @param ownHost that of admin_listen, which is trusted since an operator wrote it; may be empty
 */
export function pageFault(headers: IncomingHttpHeaders, ownHost: string): string | null {
  const { host, origin, "sec-fetch-site": site } = headers;
  const isElsewhere =
    (origin !== undefined && URL.parse(origin)?.host !== host) ||
    (site !== undefined && site !== "none" && site !== "same-origin");
  if (isElsewhere)
    return "a web page of another origin made this request; want one by a tool, or one with the token of an admin_token_file";
  // No browser leaves it out.
  if (host === undefined || isTrusted(host, ownHost)) return null;
  return (
    `a web page may have ${host} as its name, and ask by that what it may not know; want as Host an address, localhost, a name ` +
    "of one label or below .svc, .cluster.local or .internal, or that of admin_listen; or a token, in an admin_token_file"
  );
}

function isTrusted(host: string, ownHost: string): boolean {
  const hostname = URL.parse(`http://${host}`)?.hostname ?? null;
  if (hostname === null) return false;
  const isAddress = isIP(hostname.replace(/^\[(.*)\]$/, "$1")) !== 0;
  return isAddress || PRIVATE_NAME.test(hostname) || hostname === ownHost.toLowerCase();
}
