import { describe } from "vitest";
import { inRoute, itTellsAll } from "./badConfig.ts";
import type { BadConfig } from "./badConfig.ts";

/** An upstream in line 3, valid but for the lines after it. */
function inUpstream(...lines: string[]): string {
  const head = ["routes:", "  - {name: r, upstreams: [{name: a, url: https://a/w,"];
  return [...head, ...lines.map((line) => `      ${line}`), "    }]}"].join("\n");
}

function withUrl(url: string): string {
  return `routes:\n  - {name: r, upstreams: [{name: a, url: ${url}}]}`;
}

const WANT_URL = "want a url as http://vmagent-0:8429/api/v1/write";

const UPSTREAMS: readonly BadConfig[] = [
  {
    name: "an upstream without anything",
    yaml: "routes: [{name: r, upstreams: [{}]}]",
    problems: [
      "1:32: routes[0].upstreams[0].name: missing; want a name for the upstream",
      "1:32: routes[0].upstreams[0].url: missing; want a url as http://vmagent-0:8429/api/v1/write, or removed: true for one that is gone",
    ],
  },
  {
    name: "two upstreams of one name",
    yaml: [
      "routes:",
      "  - name: r",
      "    upstreams:",
      "      - {name: a, url: http://a/w}",
      "      - {name: a, url: http://b/w}",
    ].join("\n"),
    problems: [
      "5:16: routes[0].upstreams[1].name: want another name; the upstream of this route at line 4 has this one",
      "5:24: routes[0].upstreams[1].url: want one url for a in the whole file; it has another at line 4",
    ],
  },
  {
    name: "one name with two urls in two routes",
    yaml: [
      "routes:",
      "  - {name: r, upstreams: [{name: a, url: http://a/w}]}",
      "  - {name: s, upstreams: [{name: a, url: http://a/x}]}",
    ].join("\n"),
    problems: [
      "3:42: routes[1].upstreams[0].url: want one url for a in the whole file; it has another at line 2",
    ],
  },
  {
    name: "another scheme",
    yaml: withUrl("ftp://a/w"),
    problems: [`2:42: routes[0].upstreams[0].url: ${WANT_URL}; got ftp://a/w`],
  },
  {
    name: "no scheme",
    yaml: withUrl("a:8429/w"),
    problems: [`2:42: routes[0].upstreams[0].url: ${WANT_URL}; got a:8429/w`],
  },
  {
    name: "no host",
    yaml: withUrl("http:///w"),
    problems: [`2:42: routes[0].upstreams[0].url: ${WANT_URL}; got http:///w`],
  },
  {
    name: "a port that is none",
    yaml: withUrl("http://a:99999/w"),
    problems: [`2:42: routes[0].upstreams[0].url: ${WANT_URL}; got http://a:99999/w`],
  },
  {
    name: "port 0",
    yaml: withUrl("http://a:0/w"),
    problems: ["2:42: routes[0].upstreams[0].url: want a url with a port above 0; got http://a:0/w"],
  },
  {
    name: "a fragment",
    yaml: withUrl("http://a/w#x"),
    problems: ["2:42: routes[0].upstreams[0].url: want a url without fragment (#...); got http://a/w#x"],
  },
  {
    name: "a blank",
    yaml: withUrl("'http://a/ w'"),
    problems: [`2:42: routes[0].upstreams[0].url: ${WANT_URL}; got "http://a/ w"`],
  },
  {
    name: "user and password in the url",
    yaml: withUrl("http://me:hunter2@a/w"),
    problems: [
      "2:42: routes[0].upstreams[0].url: want a url without user and password, which go into basic_auth; got one with them",
    ],
  },
  {
    name: "a bad url with a token in its query",
    yaml: withUrl("'htp://a/w?token=hunter2'"),
    problems: [`2:42: routes[0].upstreams[0].url: ${WANT_URL}; got another one`],
  },
  {
    name: "a key that no upstream has",
    yaml: inUpstream("wieght: 2, replicas: 3"),
    problems: [
      "3:7: routes[0].upstreams[0].wieght: unknown key; did you mean weight?",
      "3:18: routes[0].upstreams[0].replicas: unknown key; want one of: name, removed, weight, write_relabel_configs, url, basic_auth, authorization, headers, tls_config",
    ],
  },
];

const CREDENTIALS: readonly BadConfig[] = [
  {
    name: "two ways to authenticate",
    yaml: inUpstream("basic_auth: {username: u}, authorization: {credentials: hunter2}"),
    problems: [
      "3:49: routes[0].upstreams[0].authorization: want either basic_auth or authorization; got both",
    ],
  },
  {
    name: "a password twice",
    yaml: inUpstream("basic_auth: {username: u, password: hunter2, password_file: package.json}"),
    problems: [
      "3:67: routes[0].upstreams[0].basic_auth.password_file: want either password or password_file; got both",
    ],
  },
  {
    name: "a password without user",
    yaml: inUpstream("basic_auth: {password: hunter2}"),
    problems: ["3:19: routes[0].upstreams[0].basic_auth.username: missing; want a user name"],
  },
  {
    name: "a user name that basic authentication cannot carry",
    yaml: inUpstream("basic_auth: {username: 'hunter:2'}"),
    problems: [
      "3:30: routes[0].upstreams[0].basic_auth.username: want a user name without a colon, which ends it in basic authentication",
    ],
  },
  {
    name: "a user name that is empty",
    yaml: inUpstream("basic_auth: {username: ''}"),
    problems: ["3:30: routes[0].upstreams[0].basic_auth.username: want a user name; got nothing"],
  },
  {
    name: "a password that is a list",
    yaml: inUpstream("basic_auth: {username: u, password: [hunter2]}"),
    problems: ["3:43: routes[0].upstreams[0].basic_auth.password: want text; got a list"],
  },
  {
    name: "credentials where keys are missing",
    yaml: inUpstream("basic_auth: u hunter2"),
    problems: ["3:19: routes[0].upstreams[0].basic_auth: want keys and values; got text"],
  },
  {
    name: "a colon missing before credentials",
    yaml: inUpstream("authorization: {credentials hunter2: }"),
    problems: [
      "3:22: routes[0].upstreams[0].authorization.credentials: missing; want credentials or credentials_file",
      "3:23: routes[0].upstreams[0].authorization.credentials…: unknown key; want one of: type, credentials, credentials_file",
    ],
  },
  {
    name: "an empty credential and a basic scheme",
    yaml: inUpstream("authorization: {type: basic, credentials: ''}"),
    problems: [
      "3:29: routes[0].upstreams[0].authorization.type: want basic_auth for basic authentication; got basic",
      "3:49: routes[0].upstreams[0].authorization.credentials: want credentials; got nothing",
    ],
  },
  {
    name: "credentials that no header can carry",
    yaml: inUpstream(`authorization: {type: Bearer hunter2, credentials: "hunter2\\n"}`),
    problems: [
      "3:29: routes[0].upstreams[0].authorization.type: want an authorization scheme as Bearer; got something else",
      "3:58: routes[0].upstreams[0].authorization.credentials: want printable ASCII on one line; got other characters",
    ],
  },
  {
    name: "a secret's file that is not there",
    yaml: inUpstream("basic_auth: {username: u, password_file: hunter2}"),
    problems: [
      "3:48: routes[0].upstreams[0].basic_auth.password_file: cannot use the file: no such file (relative paths start at the configuration's folder)",
    ],
  },
  {
    name: "a secret's file without a path",
    yaml: inUpstream("basic_auth: {username: u, password_file: ''}"),
    problems: ["3:48: routes[0].upstreams[0].basic_auth.password_file: want the path of a file; got nothing"],
  },
];

const HEADERS: readonly BadConfig[] = [
  {
    name: "reserved headers",
    yaml: inUpstream(
      "headers: {Content-Type: x, x-prometheus-remote-write-version: 1, authorization: hunter2}",
    ),
    problems: [
      "3:17: routes[0].upstreams[0].headers.Content-Type: want headers that the gateway does not set itself; this one is reserved",
      "3:34: routes[0].upstreams[0].headers.x-prometheus-remote-write-version: want headers that the gateway does not set itself; this one is reserved",
      "3:72: routes[0].upstreams[0].headers.authorization: want basic_auth or authorization of the upstream for this header",
    ],
  },
  {
    name: "headers that HTTP cannot carry",
    yaml: inUpstream(`headers: {"a b": x, A: "hunter2\\r\\n", B: hüter, C: [x], D: }`),
    problems: [
      `3:17: routes[0].upstreams[0].headers.a…: want a header name of letters, digits and dashes; got "a b"`,
      "3:30: routes[0].upstreams[0].headers.A: want printable ASCII; got other characters",
      "3:48: routes[0].upstreams[0].headers.B: want printable ASCII; got other characters",
      "3:58: routes[0].upstreams[0].headers.C: want the header's value; got a list",
      "3:66: routes[0].upstreams[0].headers.D: want the header's value; got nothing",
    ],
  },
  {
    name: "a header twice in two cases",
    yaml: inUpstream("headers: {X-Scope-OrgID: a,", "x-scope-orgid: b}"),
    problems: [
      "4:7: routes[0].upstreams[0].headers.x-scope-orgid: want each header once, in whatever case; got it at line 3 as well",
    ],
  },
];

const TLS: readonly BadConfig[] = [
  {
    name: "a certificate without key, and versions the wrong way round",
    yaml: inUpstream("tls_config: {cert: hunter2, min_version: TLS13, max_version: TLS12}"),
    problems: [
      "3:19: routes[0].upstreams[0].tls_config.key: missing; want the private key of the certificate",
      "3:68: routes[0].upstreams[0].tls_config.max_version: want a min_version of at most max_version; got TLS13 and TLS12",
    ],
  },
  {
    name: "a highest version below the lowest by default",
    yaml: inUpstream("tls_config: {max_version: TLS11}"),
    problems: [
      "3:33: routes[0].upstreams[0].tls_config.max_version: want min_version as well, which is TLS12 by default; got TLS11 alone",
    ],
  },
  {
    name: "a key without certificate",
    yaml: inUpstream("tls_config: {key: hunter2}"),
    problems: [
      "3:19: routes[0].upstreams[0].tls_config.cert: missing; want the certificate of the private key",
    ],
  },
  {
    name: "things that are no certificates",
    yaml: inUpstream("tls_config: {ca: hunter2, cert: hunter2, key: hunter2}"),
    problems: [
      "3:24: routes[0].upstreams[0].tls_config.ca: want certificates in PEM; OpenSSL says no start line",
      "3:39: routes[0].upstreams[0].tls_config.cert: want a certificate in PEM; OpenSSL says no start line",
    ],
  },
  {
    name: "values of other kinds",
    yaml: inUpstream("tls_config: {insecure_skip_verify: yes, min_version: TLS1.2, server_name: ''}"),
    problems: [
      "3:42: routes[0].upstreams[0].tls_config.insecure_skip_verify: want true or false; got yes",
      "3:60: routes[0].upstreams[0].tls_config.min_version: want TLS10, TLS11, TLS12 or TLS13; got TLS1.2",
      `3:81: routes[0].upstreams[0].tls_config.server_name: want some text; got ""`,
    ],
  },
];

const DELIVERY: readonly BadConfig[] = [
  {
    name: "times without unit and of nothing",
    yaml: inRoute("delivery: {remote_timeout: 30, delivery_deadline: 0s, breaker: {reset_after: 1.5s}}"),
    problems: [
      "4:32: routes[0].delivery.remote_timeout: want a duration as 1h30m, 15s or 20ms; got 30",
      "4:55: routes[0].delivery.delivery_deadline: want at least 1ms; got 0s",
      "4:82: routes[0].delivery.breaker.reset_after: want a duration as 1h30m, 15s or 20ms; got 1.5s",
    ],
  },
  {
    name: "backoff the wrong way round",
    yaml: inRoute("delivery: {queue_config: {min_backoff: 2s, max_backoff: 1s}}"),
    problems: [
      "4:61: routes[0].delivery.queue_config.max_backoff: want a min_backoff of at most max_backoff; got min_backoff 2s, max_backoff 1s",
    ],
  },
  {
    name: "counts of nothing, and a flag that is text",
    yaml: inRoute(
      `delivery: {queue_config: {max_samples_per_send: 0, retry_on_http_429: "true"}, breaker: {consecutive_failures: 0}}`,
    ),
    problems: [
      "4:53: routes[0].delivery.queue_config.max_samples_per_send: want at least 1; got 0",
      `4:75: routes[0].delivery.queue_config.retry_on_http_429: want true or false; got "true"`,
      "4:116: routes[0].delivery.breaker.consecutive_failures: want at least 1; got 0",
    ],
  },
  {
    name: "no lanes",
    yaml: inRoute("delivery: {queue_config: {lanes: 0}}"),
    problems: ["4:38: routes[0].delivery.queue_config.lanes: want at least 1; got 0"],
  },
  {
    name: "more lanes than a receiver can do with",
    yaml: inRoute("delivery: {queue_config: {lanes: 65}}"),
    problems: ["4:38: routes[0].delivery.queue_config.lanes: want at most 64; got 65"],
  },
  {
    name: "codes that are retried anyway or never",
    yaml: inRoute("delivery: {retry_on: [404, 408, 429, 503, 302, 404]}"),
    problems: [
      "4:32: routes[0].delivery.retry_on[1]: want codes other than 408, which is retried anyway; got 408",
      "4:37: routes[0].delivery.retry_on[2]: want codes other than 429, which queue_config.retry_on_http_429 is for; got 429",
      "4:42: routes[0].delivery.retry_on[3]: want codes from 400 to 499; 5xx are retried anyway, others never; got 503",
      "4:47: routes[0].delivery.retry_on[4]: want codes from 400 to 499; 5xx are retried anyway, others never; got 302",
      "4:52: routes[0].delivery.retry_on[5]: want each once; got 404 again, as at line 4",
    ],
  },
  {
    name: "options of Prometheus that mean nothing here",
    yaml: inRoute("delivery: {send_exemplars: true, queue_config: {max_shards: 4}}"),
    problems: [
      "4:16: routes[0].delivery.send_exemplars: unknown key; want one of: remote_timeout, queue_config, breaker, delivery_deadline, retry_on, ack, on_outage, spool_after, sample_age_limit",
      "4:53: routes[0].delivery.queue_config.max_shards: unknown key; want one of: lanes, max_samples_per_send, batch_send_deadline, min_backoff, max_backoff, retry_on_http_429",
    ],
  },
  {
    name: "acknowledgements and outages of other kinds",
    yaml: inRoute("delivery: {ack: none, on_outage: buffer, spool_after: 0s}"),
    problems: [
      "4:21: routes[0].delivery.ack: want safe or enqueued; got none",
      "4:38: routes[0].delivery.on_outage: want spool, refuse or drop; got buffer",
      "4:59: routes[0].delivery.spool_after: want at least 1ms; got 0s",
    ],
  },
];

describe("a configuration with errors in upstreams or delivery", () => {
  itTellsAll([UPSTREAMS, CREDENTIALS, HEADERS, TLS, DELIVERY].flat());
});
