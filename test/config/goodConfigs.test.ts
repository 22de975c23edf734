import { describe, expect, it } from "vitest";
import type { Config } from "../../src/config/config.ts";
import { parseConfig } from "../../src/config/load.ts";
import { formatProblem } from "../../src/config/problem.ts";
import { placementFault } from "../../src/hash/placementFault.ts";
import { faultOf } from "../../src/relabel/rules.ts";

const UPSTREAMS = `upstreams: [{name: a, url: "http://a/w"}, {name: b, url: "http://b/w"}]`;

/** The config of a text that has neither errors nor, unless they are given, warnings. */
function load(yaml: string, warnings: readonly string[] = []): Config {
  const { config, problems, origin } = parseConfig(yaml, "f.yaml", {
    legacyHash: "jump",
    checkRule: faultOf,
    checkPlacement: placementFault,
  });
  expect(problems.map(formatProblem)).toEqual(warnings);
  expect(origin).toBe("native");
  if (config === null) throw new Error("no config");
  return config;
}

function loadRoute(options: string): Config["routes"][number] {
  const [route] = load(`routes: [{name: r, ${UPSTREAMS}, ${options}}]`).routes;
  if (route === undefined) throw new Error("no route");
  return route;
}

function loadUpstream(options: string): Config["routes"][number]["upstreams"][number] {
  const [upstream] =
    load(`routes: [{name: r, upstreams: [{name: a, url: https://a/w, ${options}}]}]`).routes[0]?.upstreams ??
    [];
  if (upstream === undefined) throw new Error("no upstream");
  return upstream;
}

const NO_RULES = { dialect: "prometheus", rules: [] } as const;

const DEFAULTS: Config = {
  listen: { host: "127.0.0.1", port: 8080 },
  admin: { listen: { host: "127.0.0.1", port: 8081 }, token: null },
  reload: { watch: true, maxMovedRatio: 0.5 },
  limits: {
    maxBodyBytes: 33554432,
    maxDecodedBytes: 33554432,
    maxLabels: 256,
    maxLabelNameBytes: 1024,
    maxLabelValueBytes: 65536,
    bodyTimeoutMs: 15000,
  },
  memory: {
    inFlightBytes: 256 * 1024 * 1024,
    decisionTable: { maxSeries: 1_000_000, maxBytes: 256 * 1024 * 1024 },
  },
  shutdown: { drainDelayMs: 5000, graceMs: 30000 },
  maxConnectionAgeMs: 120_000,
  spool: {
    path: "./data/spool",
    maxBytes: 1073741824,
    maxBytesPerUpstream: 1073741824,
    whenFull: "refuse",
    orphans: "keep",
  },
  relabel: NO_RULES,
  routes: [
    {
      route: {
        name: "r",
        tenant: { header: "x-scope-orgid", label: null, pass: false },
        relabel: NO_RULES,
        final: false,
        keyFormat: "pairs",
        tasks: null,
        placement: { key: { kind: "all" }, algorithm: "jump", missingKey: "one_place", replicas: 1 },
        topology: [{ fromMs: null, slots: [{ name: "a" }, { name: "b" }] }],
        upstreams: [
          { name: "a", writeRelabel: NO_RULES },
          { name: "b", writeRelabel: NO_RULES },
        ],
        retireAfterMs: 3_600_000,
      },
      upstreams: [
        {
          name: "a",
          url: new URL("http://a/w"),
          auth: { kind: "none" },
          headers: {},
          tls: { insecureSkipVerify: false },
        },
        {
          name: "b",
          url: new URL("http://b/w"),
          auth: { kind: "none" },
          headers: {},
          tls: { insecureSkipVerify: false },
        },
      ],
      delivery: {
        remoteTimeoutMs: 30000,
        lanes: 1,
        maxSamplesPerSend: 10000,
        batchSendDeadlineMs: 20,
        minBackoffMs: 30,
        maxBackoffMs: 5000,
        retryOnHttp429: true,
        retryOn: [],
        breaker: { consecutiveFailures: 5, resetAfterMs: 10000 },
        deliveryDeadlineMs: 10000,
        ack: "safe",
        onOutage: "spool",
        spoolAfterMs: 1000,
        sampleAgeLimitMs: 0,
        tenantHeader: null,
      },
    },
  ],
};

describe("a configuration of the least that is needed", () => {
  it("has the defaults for everything else", () => {
    expect(load(`routes: [{name: r, ${UPSTREAMS}}]`)).toEqual(DEFAULTS);
  });

  it("is the same when every section is there but null", () => {
    const nulls =
      "key_format: , placement: {key: null, algorithm: , replicas: }, delivery: {queue_config: , breaker: }, " +
      "relabel_dialect: , relabel_configs: , metric_relabel_configs: , final: , tenant: {header: , label: , pass: }";
    const top = "listen:\nlimits:\nshutdown: ~\nrelabel_configs:\n";
    expect(load(`${top}routes: [{name: r, ${UPSTREAMS}, ${nulls}}]`)).toEqual(DEFAULTS);
  });

  it("is the same when every default is written out", () => {
    const yaml = `
listen: 127.0.0.1:8080
limits: {max_body_bytes: 32MiB, max_decoded_bytes: 32MiB, max_labels: 256, max_label_name_bytes: 1KiB, max_label_value_bytes: 64KiB, body_timeout: 15s}
memory: {in_flight_bytes: 256MiB, decision_table_series: 1000000, decision_table_bytes: 256MiB}
shutdown: {drain_delay: 5s, grace: 30s}
max_connection_age: 2m
relabel_configs: []
routes:
  - name: r
    relabel_dialect: prometheus
    relabel_configs: []
    final: false
    tenant: {header: X-Scope-OrgID, label: "", pass: false}
    key_format: pairs
    placement: {key: series, algorithm: jump, missing_key: one_place, replicas: 1}
    upstreams:
      - {name: a, url: "http://a/w", tls_config: , headers: {}, write_relabel_configs: []}
      - {name: b, url: "http://b/w"}
    delivery:
      remote_timeout: 30s
      queue_config: {lanes: 1, max_samples_per_send: 10000, batch_send_deadline: 20ms, min_backoff: 30ms, max_backoff: 5s, retry_on_http_429: true}
      breaker: {consecutive_failures: 5, reset_after: 10s}
      delivery_deadline: 10s
      sample_age_limit: 0s
      retry_on: []
`;
    expect(load(yaml)).toEqual(DEFAULTS);
  });

  it("is frozen all the way down", () => {
    const reached: unknown[] = [];
    const visit = (value: unknown): void => {
      if (typeof value !== "object" || value === null) return;
      reached.push(value);
      expect(Object.isFrozen(value)).toBe(true);
      Object.values(value).forEach(visit);
    };
    visit(load(`routes: [{name: r, ${UPSTREAMS}, tasks: {by: [x]}, delivery: {retry_on: [404]}}]`));
    expect(reached.length).toBeGreaterThan(15);
  });
});

describe("an address to listen on", () => {
  it.each([
    { name: "IPv4", listen: "127.0.0.1:8080", expected: { host: "127.0.0.1", port: 8080 } },
    { name: "all IPv4 addresses", listen: "0.0.0.0:9090", expected: { host: "0.0.0.0", port: 9090 } },
    { name: "all addresses", listen: ":8080", expected: { host: "", port: 8080 } },
    { name: "IPv6", listen: '"[::1]:8080"', expected: { host: "::1", port: 8080 } },
    { name: "a host name", listen: "localhost:8080", expected: { host: "localhost", port: 8080 } },
    {
      name: "a port that the system chooses",
      listen: "127.0.0.1:0",
      expected: { host: "127.0.0.1", port: 0 },
    },
  ])("may be $name", ({ listen, expected }) => {
    expect(load(`listen: ${listen}\nroutes: [{name: r, ${UPSTREAMS}}]`).listen).toEqual(expected);
  });
});

describe("tasks and placement", () => {
  const task = { kind: "task" };
  const all = { kind: "all" };
  it.each([
    { name: "tasks alone", options: "tasks: {}", taskKey: all, placementKey: task },
    { name: "an empty by", options: "tasks: {by: []}", taskKey: all, placementKey: task },
    {
      name: "an empty by beside without",
      options: "tasks: {by: [], without: [pod]}",
      taskKey: { kind: "without", names: ["pod"] },
      placementKey: task,
    },
    {
      name: "tasks by labels",
      options: "tasks: {by: [job, __name__]}",
      taskKey: { kind: "by", names: ["job", "__name__"] },
      placementKey: task,
    },
    {
      name: "placement by the series",
      options: "tasks: {}, placement: {key: series}",
      taskKey: all,
      placementKey: all,
    },
    {
      name: "placement by labels",
      options: "tasks: {}, placement: {key: {by: [job]}}",
      taskKey: all,
      placementKey: { kind: "by", names: ["job"] },
    },
    {
      name: "placement without labels",
      options: "placement: {key: {without: [pod]}}",
      taskKey: undefined,
      placementKey: { kind: "without", names: ["pod"] },
    },
    {
      name: "the task label in a flat key",
      options: "key_format: flat, tasks: {}, placement: {key: {by: [job, stream_task_id]}}",
      taskKey: all,
      placementKey: { kind: "by", names: ["job", "stream_task_id"] },
    },
    {
      name: "the sender's task label without tasks",
      options: "placement: {key: {by: [stream_task_id]}}",
      taskKey: undefined,
      placementKey: { kind: "by", names: ["stream_task_id"] },
    },
  ])("may be $name", ({ options, taskKey, placementKey }) => {
    const { route } = loadRoute(options);
    expect(route.tasks?.key).toEqual(taskKey);
    expect(route.placement.key).toEqual(placementKey);
  });

  it("take count, label and algorithms", () => {
    const { route } = loadRoute(
      "tasks: {count: 2147483647, label: shard, algorithm: hashmod}, placement: {key: {by: [a]}, algorithm: hashmod, missing_key: whole_set}",
    );
    expect(route.tasks).toEqual({
      count: 2147483647,
      label: "shard",
      algorithm: "hashmod",
      key: { kind: "all" },
    });
    expect(route.placement).toEqual({
      key: { kind: "by", names: ["a"] },
      algorithm: "hashmod",
      missingKey: "whole_set",
      replicas: 1,
    });
  });

  it("of fewer tasks than upstreams are warned about", () => {
    const message =
      "routes[0].upstreams: 2 upstreams for 1 tasks: with key: task at least 1 get nothing; want more tasks, or fewer upstreams";
    load(`routes: [{name: r, tasks: {count: 1}, ${UPSTREAMS}}]`, [`f.yaml:1:50: warning: ${message}`]);
  });
});

describe("an upstream", () => {
  it("takes basic authentication", () => {
    expect(loadUpstream("basic_auth: {username: me, password: 0123}").auth).toEqual({
      kind: "basic",
      username: "me",
      password: "0123",
    });
  });

  it("takes a user name alone", () => {
    expect(loadUpstream("basic_auth: {username: token}").auth).toEqual({
      kind: "basic",
      username: "token",
      password: "",
    });
  });

  it("takes credentials, by default as a bearer", () => {
    expect(loadUpstream("authorization: {credentials: abc}").auth).toEqual({
      kind: "authorization",
      type: "Bearer",
      credentials: "abc",
    });
    expect(loadUpstream("authorization: {type: Token, credentials: abc}").auth).toEqual({
      kind: "authorization",
      type: "Token",
      credentials: "abc",
    });
  });

  it("takes headers as they are written, numbers and all", () => {
    expect(loadUpstream(`headers: {X-Scope-OrgID: 007, __proto__: x, X-Empty: ""}`).headers).toEqual(
      Object.fromEntries([
        ["X-Scope-OrgID", "007"],
        ["__proto__", "x"],
        ["X-Empty", ""],
      ]),
    );
  });

  it("takes TLS options", () => {
    const options =
      "tls_config: {server_name: b, insecure_skip_verify: true, min_version: TLS10, max_version: TLS13}";
    expect(loadUpstream(options).tls).toEqual({
      serverName: "b",
      insecureSkipVerify: true,
      minVersion: "TLSv1",
      maxVersion: "TLSv1.3",
    });
  });

  it("may have the name of one in another route, if the url is the same", () => {
    const { routes } = load(`routes:\n- {name: r, ${UPSTREAMS}}\n- {name: s, ${UPSTREAMS}}`);
    expect(routes.map(({ route }) => route.upstreams.map(({ name }) => name))).toEqual([
      ["a", "b"],
      ["a", "b"],
    ]);
  });

  it("is warned about TLS options that its url makes useless", () => {
    load(`routes: [{name: r, upstreams: [{name: a, url: http://a/w, tls_config: {server_name: b}}]}]`, [
      "f.yaml:1:71: warning: routes[0].upstreams[0].tls_config: has no effect, since the url is http and not https",
    ]);
  });
});

describe("delivery", () => {
  it("takes all its options", () => {
    const { delivery } = loadRoute(
      "delivery: {ack: enqueued, on_outage: drop, spool_after: 2s, sample_age_limit: 1h, remote_timeout: 1m, delivery_deadline: 1h30m, retry_on: [404, 409], breaker: {consecutive_failures: 1, reset_after: 250ms}, " +
        "queue_config: {lanes: 64, max_samples_per_send: 1, batch_send_deadline: 0s, min_backoff: 1s, max_backoff: 1s, retry_on_http_429: false}}",
    );
    expect(delivery).toEqual({
      remoteTimeoutMs: 60000,
      lanes: 64,
      maxSamplesPerSend: 1,
      batchSendDeadlineMs: 0,
      minBackoffMs: 1000,
      maxBackoffMs: 1000,
      retryOnHttp429: false,
      retryOn: [404, 409],
      breaker: { consecutiveFailures: 1, resetAfterMs: 250 },
      deliveryDeadlineMs: 5400000,
      ack: "enqueued",
      onOutage: "drop",
      spoolAfterMs: 2000,
      sampleAgeLimitMs: 3600000,
      tenantHeader: null,
    });
  });

  it("goes behind after a tenth of its deadline, at most after a second", () => {
    expect(loadRoute("delivery: {delivery_deadline: 2s}").delivery.spoolAfterMs).toBe(200);
    expect(loadRoute("delivery: {delivery_deadline: 1m}").delivery.spoolAfterMs).toBe(1000);
  });

  it("is warned about a deadline by which nothing is spooled", () => {
    load(`routes: [{name: r, ${UPSTREAMS}, delivery: {delivery_deadline: 2s, spool_after: 2s}}]`, [
      "f.yaml:1:140: warning: routes[0].delivery.spool_after: not shorter than delivery_deadline 2s: senders are told to come again before their data is spooled",
    ]);
    load(`routes: [{name: r, ${UPSTREAMS}, delivery: {on_outage: refuse, spool_after: 10s}}]`);
  });

  it("is warned about a deadline that leaves no time to try again", () => {
    load(`routes: [{name: r, ${UPSTREAMS}, delivery: {delivery_deadline: 30ms}}]`, [
      "f.yaml:1:123: warning: routes[0].delivery.delivery_deadline: not longer than min_backoff 30ms: nothing may be tried again before the sender is answered",
    ]);
  });

  it("is warned about parcels that wait for company until their deadline", () => {
    const queue = "queue_config: {batch_send_deadline: 1s}";
    load(`routes: [{name: r, ${UPSTREAMS}, delivery: {delivery_deadline: 1s, ${queue}}}]`, [
      "f.yaml:1:123: warning: routes[0].delivery.delivery_deadline: not longer than batch_send_deadline 1s: what waits that long for company is not sent",
    ]);
  });
});

describe("the admin listener", () => {
  const routes = `routes: [{name: r, ${UPSTREAMS}}]`;

  it.each([
    { name: "none", yaml: "admin_listen: off", listen: null },
    {
      name: "another port of this machine",
      yaml: 'admin_listen: "[::1]:9"',
      listen: { host: "::1", port: 9 },
    },
  ])("can be $name", ({ yaml, listen }) => {
    expect(load(`${yaml}\nadmin_token_file: ""\n${routes}`).admin).toEqual({ listen, token: null });
  });

  it("is warned about where strangers reach it without a token", () => {
    const warning =
      "f.yaml:1:15: warning: admin_listen: whoever reaches this address may change the configuration that runs, and " +
      "sees series: want an admin_token_file, or an address of this machine alone such as 127.0.0.1:8081";
    expect(load(`admin_listen: :8081\n${routes}`, [warning]).admin.listen).toEqual({ host: "", port: 8081 });
  });
});

describe("reload", () => {
  it("can be without watching, and allow any move", () => {
    const yaml = `reload: {watch: false, max_moved_ratio: 1}\nroutes: [{name: r, ${UPSTREAMS}}]`;
    expect(load(yaml).reload).toEqual({ watch: false, maxMovedRatio: 1 });
  });
});
