/**
 * `routes[].upstreams[]`: names, urls, headers, rules. Credentials are in authSection.ts, certificates in tlsSection.ts.
 */
import type { UpstreamOptions } from "../deliver/options.ts";
import type { RelabelDialect, RelabelRuleList } from "../relabel/options.ts";
import { readAuth } from "./authSection.ts";
import { httpHeaders } from "./httpHeaders.ts";
import type { ConfigNode } from "./node.ts";
import { shownText } from "./node.ts";
import type { Place, ProblemList } from "./problem.ts";
import type { RuleReader } from "./ruleReader.ts";
import { name, text, wrong } from "./scalars.ts";
import { sectionOf } from "./section.ts";
import type { Reader, Section } from "./section.ts";
import { readTls } from "./tlsSection.ts";

export interface RouteUpstream {
  readonly options: UpstreamOptions;
  readonly writeRelabel: RelabelRuleList;
}

/** What upstreams need to know of their route. */
export interface UpstreamContext {
  readonly dialect: RelabelDialect;
  /** The header, in lower case, in which upstreams get the tenant; null for none. */
  readonly tenantHeader: string | null;
}

/** Reads the upstreams of one file; it remembers which name has which url, since a name has one in the whole file. */
export class UpstreamReader {
  readonly #folder: string;
  readonly #rules: RuleReader;
  readonly #urls = new Map<string, { readonly href: string; readonly place: Place }>();

  constructor(folder: string, rules: RuleReader) {
    this.#folder = folder;
    this.#rules = rules;
  }

  /** A reader for the upstreams of one route, whose names must differ. */
  readerForRoute(context: UpstreamContext): Reader<RouteUpstream> {
    const names = new Map<string, Place>();
    return sectionOf((upstream) => this.#upstream(upstream, context, names));
  }

  #upstream(
    upstream: Section,
    { dialect, tenantHeader }: UpstreamContext,
    names: Map<string, Place>,
  ): RouteUpstream | null {
    const upstreamName = upstream.required("name", name, "a name for the upstream");
    const url = upstream.required("url", upstreamUrl, "a url as http://vmagent-0:8429/api/v1/write");
    const auth = readAuth(upstream, this.#folder);
    const headers = upstream.optional("headers", httpHeaders(tenantHeader), {});
    const tls = upstream.section("tls_config", (section) => readTls(section, this.#folder));
    const writeRelabel = this.#rules.read(upstream, "write_relabel_configs", dialect);
    if (upstreamName !== null) checkNew(upstreamName, names, upstream);
    if (upstreamName === null || url === null) return null;
    this.#checkOneUrl(upstreamName, url, upstream);
    if (upstream.has("tls_config") && url.protocol === "http:") {
      upstream.problems.warning(
        upstream.placeOf("tls_config"),
        "has no effect, since the url is http and not https",
      );
    }
    return { options: { name: upstreamName, url, auth, headers, tls }, writeRelabel };
  }

  #checkOneUrl(upstreamName: string, { href }: URL, upstream: Section): void {
    const place = upstream.placeOf("url");
    const known = this.#urls.get(upstreamName);
    if (known === undefined) this.#urls.set(upstreamName, { href, place });
    else if (known.href !== href) {
      const message = `want one url for ${shownText(upstreamName)} in the whole file; it has another at line ${known.place.line}`;
      upstream.problems.error(place, message);
    }
  }
}

function checkNew(upstreamName: string, names: Map<string, Place>, upstream: Section): void {
  const place = upstream.placeOf("name");
  const earlier = names.get(upstreamName);
  if (earlier === undefined) names.set(upstreamName, place);
  else {
    upstream.problems.error(
      place,
      `want another name; the upstream of this route at line ${earlier.line} has this one`,
    );
  }
}

const upstreamUrl: Reader<URL> = (node, problems) => {
  const written = text(node, problems);
  if (written === null) return null;
  const want = "a url as http://vmagent-0:8429/api/v1/write";
  if (!/^https?:\/\/[^/?#]/i.test(written) || /[\s\\]/.test(written))
    return wrongUrl(node, problems, want, written);
  if (!URL.canParse(written)) return wrongUrl(node, problems, want, written);
  if (/^[^/]*\/\/[^/?#]*@/.test(written)) {
    return wrong(
      node,
      problems,
      "a url without user and password, which go into basic_auth",
      "one with them",
    );
  }
  if (written.includes("#")) return wrongUrl(node, problems, "a url without fragment (#...)", written);
  const url = new URL(written);
  return url.port === "0" ? wrongUrl(node, problems, "a url with a port above 0", written) : url;
};

/** Urls with a user or a query may hold a secret. */
function wrongUrl(node: ConfigNode, problems: ProblemList, want: string, written: string): null {
  return wrong(node, problems, want, /[@?]/.test(written) ? "another one" : shownText(written));
}
