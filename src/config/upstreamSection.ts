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
import { sameContent, shownText } from "./node.ts";
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

/**
 * What says how an upstream is reached, and what is sent to it. It may stay in a tombstone, so that one line less brings the
 * upstream back; it is not looked at there.
 */
const DESCRIBING_KEYS = [
  "url",
  "basic_auth",
  "authorization",
  "headers",
  "tls_config",
  "write_relabel_configs",
];

/** An upstream where a route first names it live. */
interface DescribedUpstream {
  /** null when something was wrong. */
  readonly live: LiveUpstream | null;
  /** By key; null for one that is not there. */
  readonly values: ReadonlyMap<string, ConfigNode | null>;
  readonly weight: number | null;
  readonly line: number;
}

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

  /**
   * Gives readers for the lists of one route's upstreams, one for each period. Names must differ in each list; an upstream that
   * an earlier one has described need not be described again.
   */
  readerForRoute(context: UpstreamContext): () => Reader<ListedUpstream> {
    const described = new Map<string, DescribedUpstream>();
    return () => {
      const names = new Map<string, Place>();
      return sectionOf((upstream) => this.#upstream(upstream, context, names, described));
    };
  }

  #upstream(
    upstream: Section,
    context: UpstreamContext,
    names: Map<string, Place>,
    described: Map<string, DescribedUpstream>,
  ): ListedUpstream | null {
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
      for (const key of DESCRIBING_KEYS) upstream.node(key);
      const tombstone = { slot: { ...place, removed }, live: null, weightPlace };
      return upstreamName === null || !isNew ? null : tombstone;
    }
    const known = isNew ? described.get(upstreamName ?? "") : undefined;
    const live = known === undefined ? this.#live(upstream, upstreamName, context) : known.live;
    if (known !== undefined) this.#checkSame(upstream, known, weight);
    else if (isNew && upstreamName !== null)
      described.set(upstreamName, { live, ...written(upstream), weight });
    return live === null || !isNew ? null : { slot: place, live, weightPlace };
  }

  #live(upstream: Section, upstreamName: string | null, context: UpstreamContext): LiveUpstream | null {
    const writeRelabel = this.#rules.read(upstream, "write_relabel_configs", context.dialect);
    const options = this.#connection(upstream, upstreamName, context);
    return options === null ? null : { options, writeRelabel };
  }

  /** Reports what is said of an upstream otherwise than in an earlier period: one sender serves all of them. */
  #checkSame(upstream: Section, known: DescribedUpstream, weight: number | null): void {
    const { problems } = upstream;
    const url = upstream.optional("url", upstreamUrl, null);
    if (url !== null && known.live !== null) this.#checkOneUrl(known.live.options.name, url, upstream);
    for (const [key, before] of known.values) {
      const node = upstream.node(key);
      if (key === "url" || node === null || sameContent(node, before)) continue;
      const message = `want what the period before says at line ${known.line}, or no such key, since one sender serves all periods; got another value`;
      problems.error(upstream.placeOf(key), message);
    }
    if (weight === null && known.weight !== null) {
      const message = `has weight ${known.weight} at line ${known.line} and none in this period, where it counts as 1; write it here as well if it is to stay`;
      problems.warning(upstream.placeOf("weight"), message);
    }
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

/** What the values of an upstream are, and where it stands. */
function written(upstream: Section): Pick<DescribedUpstream, "values" | "line"> {
  const values = DESCRIBING_KEYS.map((key) => [key, upstream.node(key)] as const);
  return { values: new Map(values), line: upstream.place.line };
}

/** Whether no other of the list has the name; tells it when one has. */
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
