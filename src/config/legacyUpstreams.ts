/** `upstreams` of a rule of the old Go gateway: a list of urls that have no names, or a Kafka topic. */
import { listOf, someOf } from "./lists.ts";
import { mapNode, textNode } from "./node.ts";
import type { MapNode, TextNode } from "./node.ts";
import { text } from "./scalars.ts";
import type { Reader, Section } from "./section.ts";

/** Text, with its place. */
const placedText: Reader<TextNode> = (node, problems) => {
  const written = text(node, problems);
  return written === null ? null : textNode(written, node.place);
};

/** Converts the upstreams of one file; it gives every url a name that stays the same as long as the url does. */
export class LegacyUpstreams {
  readonly #urls = new Map<string, string>();

  /** @returns native upstreams in slot order, or null when there are none to convert, which it has then reported */
  convert(section: Section): MapNode[] | null {
    const type = section.optional("upstream_type", text, "remotewriter");
    const kafka = section.node("kafka_config");
    if (type === "kafka") return refuseKafka(section);
    if (type !== "remotewriter") {
      section.problems.warning(
        section.placeOf("upstream_type"),
        "taken for remotewriter, as by the old gateway",
      );
    }
    if (kafka !== null)
      section.problems.warning(kafka.place, "ignored, as by the old gateway for remotewriter");
    const urls = section.required(
      "upstream_urls",
      someOf(listOf(placedText, "urls"), "urls"),
      "a list of urls",
    );
    return urls === null || urls.length === 0 ? null : this.#named(section, urls);
  }

  #named(section: Section, urls: readonly TextNode[]): MapNode[] {
    const used = new Set<string>();
    const upstreams = urls.map((url) => this.#upstream(section, url, used));
    const message = `the upstreams are named ${[...used].join(", ")}`;
    section.problems.warning(section.placeOf("upstream_urls"), message);
    return upstreams;
  }

  #upstream(section: Section, node: TextNode, used: Set<string>): MapNode {
    const { place } = node;
    if (!/^https?:/i.test(node.text) || !URL.canParse(node.text)) {
      // Reading it natively will say what is wrong with it.
      const name = `upstream-${used.size}`;
      used.add(name);
      return mapNode({ name: textNode(name, place), url: node }, place);
    }
    const url = new URL(node.text);
    const credentials = takeCredentials(url);
    const name = textNode(this.#nameFor(url, used), place);
    if (credentials === null) return mapNode({ name, url: node }, place);
    section.problems.warning(place, "user and password of the url become basic_auth");
    const username = textNode(credentials.username, place);
    const password = textNode(credentials.password, place);
    return mapNode(
      { name, url: textNode(url.href, place), basic_auth: mapNode({ username, password }, place) },
      place,
    );
  }

  /** The host; with its path where a host has several, and numbered where a url stands more than once in a rule. */
  #nameFor(url: URL, used: Set<string>): string {
    const isFree = (name: string): boolean => (this.#urls.get(name) ?? url.href) === url.href;
    const base = isFree(url.host) ? url.host : url.host + url.pathname;
    let name = base;
    for (let number = 2; used.has(name) || !isFree(name); number++) name = `${base}-${number}`;
    used.add(name);
    this.#urls.set(name, url.href);
    return name;
  }
}

function refuseKafka(section: Section): null {
  section.node("upstream_urls"); // known, and without a meaning for Kafka
  const message =
    "this gateway writes to no Kafka, so what this rule sent there would stop flowing; remove the rule to go on without it";
  section.problems.error(section.placeOf("upstream_type"), message);
  return null;
}

/** Takes user and password out of the url; null when it has none, or they are no proper text, which is an error later. */
function takeCredentials(url: URL): { username: string; password: string } | null {
  if (url.username === "" && url.password === "") return null;
  try {
    const credentials = {
      username: decodeURIComponent(url.username),
      password: decodeURIComponent(url.password),
    };
    url.username = "";
    url.password = "";
    return credentials;
  } catch (error) {
    if (error instanceof URIError) return null;
    throw error;
  }
}
