/**
 * `routes[].upstreams[]`: names, weights, urls, headers, rules, and the tombstones of upstreams that are gone. Credentials
 * are in authSection.ts, certificates in tlsSection.ts.
 */
import type { UpstreamOptions } from "../deliver/options.ts";
import type { NamedSlot } from "../hash/slots.ts";
import type { RelabelDialect, RelabelRuleList } from "../relabel/options.ts";
import { readAuth } from "./authSection.ts";
import { httpHeaders } from "./httpHeaders.ts";
import type { ConfigNode } from "./node.ts";
import { shownText } from "./node.ts";
import type { Place, ProblemList } from "./problem.ts";
import type { RuleReader } from "./ruleReader.ts";
import { flag, name, number, text, wrong } from "./scalars.ts";
import type { SecretFiles } from "./secrets.ts";
import { sectionOf } from "./section.ts";
import type { Reader, Section } from "./section.ts";
import { readTls } from "./tlsSection.ts";

/** An upstream where a list names it. */
export interface ListedUpstream {
  readonly slot: NamedSlot;
  /** null for a tombstone. */
  readonly live: LiveUpstream | null;
  /** Where its weight stands, or would stand. */
  readonly weightPlace: Place;
}

export interface LiveUpstream {
  readonly options: UpstreamOptions;
  readonly writeRelabel: RelabelRuleList;
}

/** What may stay in a tombstone, so that one line less brings the upstream back; it is not looked at. */
const IGNORED_IN_TOMBSTONES = [
  "url",
  "basic_auth",
  "authorization",
  "headers",
  "tls_config",
  "write_relabel_configs",
];

/** What upstreams need to know of their route. */
export interface UpstreamContext {
  /** null when it is wrong. */
  readonly dialect: RelabelDialect | null;
  /** The header, in lower case, in which upstreams get the tenant; null for none. */
  readonly tenantHeader: string | null;
}

const WANT_URL = "a url as http://vmagent-0:8429/api/v1/write";

/** Reads the upstreams of one file; it remembers which name has which url, since a name has one in the whole file. */
export class UpstreamReader {
  readonly #files: SecretFiles;
  readonly #rules: RuleReader;
  readonly #urls = new Map<string, { readonly href: string; readonly place: Place }>();

  constructor(files: SecretFiles, rules: RuleReader) {
    this.#files = files;
    this.#rules = rules;
  }

  /** A reader for the upstreams of one route, whose names must differ. */
  readerForRoute(context: UpstreamContext): Reader<ListedUpstream> {
    const names = new Map<string, Place>();
    return sectionOf((upstream) => this.#upstream(upstream, context, names));
  }

  #upstream(upstream: Section, context: UpstreamContext, names: Map<string, Place>): ListedUpstream | null {
    const upstreamName = upstream.required("name", name, "a name for the upstream");
    const isNew = upstreamName === null || checkNew(upstreamName, names, upstream);
    const removed = upstream.optional("removed", flag, false);
    const weight = upstream.optional("weight", number, null);
    const place = {
      name: upstreamName ?? "",
      ...(weight === null ? {} : { weight }),
    };
    const weightPlace = upstream.placeOf("weight");
    if (removed) {
      for (const key of IGNORED_IN_TOMBSTONES) upstream.node(key);
      const tombstone = { slot: { ...place, removed }, live: null, weightPlace };
      return upstreamName === null || !isNew ? null : tombstone;
    }
    const writeRelabel = this.#rules.read(upstream, "write_relabel_configs", context.dialect);
    const options = this.#connection(upstream, upstreamName, context);
    return options === null || !isNew ? null : { slot: place, live: { options, writeRelabel }, weightPlace };
  }

  /** How a live upstream is reached. */
  #connection(
    upstream: Section,
    upstreamName: string | null,
    { tenantHeader }: UpstreamContext,
  ): UpstreamOptions | null {
    const url = upstream.required("url", upstreamUrl, `${WANT_URL}, or removed: true for one that is gone`);
    const auth = readAuth(upstream, this.#files);
    const headers = upstream.optional("headers", httpHeaders(tenantHeader), {});
    const tls = upstream.section("tls_config", (section) => readTls(section, this.#files));
    if (upstreamName === null || url === null) return null;
    this.#checkOneUrl(upstreamName, url, upstream);
    if (upstream.has("tls_config") && url.protocol === "http:") {
      upstream.problems.warning(
        upstream.placeOf("tls_config"),
        "has no effect, since the url is http and not https",
      );
    }
    return { name: upstreamName, url, auth, headers, tls };
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

/** Whether no other of the route has the name; tells it when one has. */
function checkNew(upstreamName: string, names: Map<string, Place>, upstream: Section): boolean {
  const place = upstream.placeOf("name");
  const earlier = names.get(upstreamName);
  if (earlier === undefined) {
    names.set(upstreamName, place);
    return true;
  }
  upstream.problems.error(
    place,
    `want another name; the upstream of this route at line ${earlier.line} has this one`,
  );
  return false;
}

const upstreamUrl: Reader<URL> = (node, problems) => {
  const written = text(node, problems);
  if (written === null) return null;
  if (!/^https?:\/\/[^/?#]/i.test(written) || /[\s\\]/.test(written))
    return wrongUrl(node, problems, WANT_URL, written);
  if (!URL.canParse(written)) return wrongUrl(node, problems, WANT_URL, written);
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
