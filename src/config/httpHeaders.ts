/** Headers that a configuration names: names and values that HTTP takes, and none that the gateway sets itself. */
import { shownText } from "./node.ts";
import { text, wrong } from "./scalars.ts";
import { sectionOf } from "./section.ts";
import type { Reader, Section } from "./section.ts";

/** As Prometheus reserves them for remote write, and what undici does not let a request set. */
const RESERVED = new Set([
  "accept-encoding",
  "connection",
  "content-encoding",
  "content-length",
  "content-type",
  "expect",
  "host",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "user-agent",
  "www-authenticate",
  "x-amz-content-sha256",
  "x-amz-date",
  "x-amz-security-token",
  "x-prometheus-remote-read-version",
  "x-prometheus-remote-write-version",
]);

const NAME = "a header name of letters, digits and dashes";
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** Whether HTTP takes the text as a header's name, or as an authorization scheme. */
export function isToken(written: string): boolean {
  return TOKEN.test(written);
}

/** Whether HTTP takes the text as a header's value without any question of its encoding: printable ASCII. */
export function isHeaderValue(written: string): boolean {
  return /^[\t\x20-\x7e]*$/.test(written);
}

/** The name of a header that carries a tenant, in lower case. */
export const tenantHeader: Reader<string> = (node, problems) => {
  const header = text(node, problems);
  if (header === null) return null;
  const lower = header.toLowerCase();
  if (lower === "authorization") return wrong(node, problems, "a header that holds no credentials");
  if (RESERVED.has(lower)) return wrong(node, problems, "a header that HTTP and remote write leave free");
  return isToken(header) ? lower : wrong(node, problems, NAME);
};

/**
 * A reader of an upstream's `headers`.
 *
 * @param passed the header, in lower case, in which the upstream gets the tenant; null for none
 */
export function httpHeaders(passed: string | null): Reader<Readonly<Record<string, string>>> {
  return sectionOf((section) => readHeaders(section, passed));
}

function readHeaders(section: Section, passed: string | null): Readonly<Record<string, string>> {
  const headers = new Map<string, string>();
  const lines = new Map<string, number>();
  for (const [header, { key, value }] of section.entries()) {
    const lower = header.toLowerCase();
    const earlier = lines.get(lower);
    const refusal = refuseName(header, passed);
    if (refusal !== null) section.problems.error(key, refusal);
    else if (earlier !== undefined) {
      section.problems.error(
        key,
        `want each header once, in whatever case; got it at line ${earlier} as well`,
      );
    } else headers.set(header, headerValue(value, section.problems) ?? "");
    lines.set(lower, key.line);
  }
  return Object.fromEntries(headers);
}

function refuseName(header: string, passed: string | null): string | null {
  const lower = header.toLowerCase();
  if (lower === "authorization") return "want basic_auth or authorization of the upstream for this header";
  if (RESERVED.has(lower)) return "want headers that the gateway does not set itself; this one is reserved";
  if (lower === passed)
    return "want other headers than the tenant's, which the route passes on (tenant.pass)";
  return isToken(header) ? null : `want ${NAME}; got ${shownText(header)}`;
}

/** Values may be secrets: none is shown. */
const headerValue: Reader<string> = (node, problems) => {
  if (node.kind !== "text") return wrong(node, problems, "the header's value");
  return isHeaderValue(node.text) ? node.text : wrong(node, problems, "printable ASCII", "other characters");
};
