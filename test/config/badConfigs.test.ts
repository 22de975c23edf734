import { describe } from "vitest";
import { inRoute, itTellsAll } from "./badConfig.ts";
import type { BadConfig } from "./badConfig.ts";

const WITH_ROUTE = `routes: [{name: r, upstreams: [{name: a, url: "http://a/w"}]}]`;

const WANT_ADDRESS = "want an address as 127.0.0.1:8080, [::1]:8080, or :8080 for all addresses";
const KNOWN_AT_TOP =
  "want one of: listen, admin_listen, admin_token_file, reload, limits, memory, shutdown, max_connection_age, spool, relabel_configs, routes";
const KNOWN_IN_ROUTE =
  "want one of: name, relabel_dialect, relabel_configs, metric_relabel_configs, final, key_format, tasks, tenant, topology, upstreams, placement, retire_after, delivery";

const FILE: readonly BadConfig[] = [
  { name: "an empty file", yaml: "", problems: ["1:1: routes: missing; want a list of routes"] },
  { name: "only comments", yaml: "# nothing\n", problems: ["1:1: routes: missing; want a list of routes"] },
  {
    name: "a list at the top",
    yaml: "- a",
    problems: ["1:1: want keys and values at the top of the file; got a list"],
  },
  {
    name: "text at the top",
    yaml: "a",
    problems: ["1:1: want keys and values at the top of the file; got text"],
  },
  {
    name: "no routes",
    yaml: "routes: []",
    problems: ["1:9: routes: want at least one of the routes; got an empty list"],
  },
  {
    name: "routes that are null",
    yaml: "routes:",
    problems: ["1:8: routes: missing; want a list of routes"],
  },
  {
    name: "routes that are a map",
    yaml: "routes: {}",
    problems: ["1:9: routes: want a list of routes; got a map"],
  },
  {
    name: "a typo at the top",
    yaml: `${WITH_ROUTE}\nlimit: {}`,
    problems: ["2:1: limit: unknown key; did you mean limits?"],
  },
  {
    name: "options of later versions",
    yaml: `${WITH_ROUTE}\nworkers: auto`,
    problems: [`2:1: workers: unknown key; ${KNOWN_AT_TOP}`],
  },
  {
    name: "an admin listener that cannot be, and a share above one",
    yaml: `${WITH_ROUTE}\nadmin_listen: of\nadmin_token_file: no-such-file\nreload: {watch: maybe, max_moved_ratio: 50}`,
    problems: [
      `2:15: admin_listen: ${WANT_ADDRESS}; got of`,
      "3:19: admin_token_file: cannot use the file: no such file (relative paths start at the configuration's folder)",
      "4:17: reload.watch: want true or false; got maybe",
      "4:41: reload.max_moved_ratio: want at most 1; got 50",
    ],
  },
  {
    name: "a spool that is too small, and words it does not know",
    yaml: `${WITH_ROUTE}\nspool: {path: "", max_bytes: 1MiB, when_full: block, orphans: move}`,
    problems: [
      '2:15: spool.path: want some text; got ""',
      "2:30: spool.max_bytes: want at least 16MiB; got 1MiB",
      "2:47: spool.when_full: want refuse or drop_oldest; got block",
      "2:63: spool.orphans: want keep or drop; got move",
    ],
  },
  {
    name: "an upstream that may spool more than all together",
    yaml: `${WITH_ROUTE}\nspool: {max_bytes: 1GiB, max_bytes_per_upstream: 2GiB}`,
    problems: [
      "2:50: spool.max_bytes_per_upstream: want at most spool.max_bytes, 1GiB, which is for all upstreams; got 2GiB",
    ],
  },
  {
    name: "keys of the old gateway in a native file",
    yaml: `${WITH_ROUTE}\nrouter_rules: []`,
    problems: [`2:1: router_rules: unknown key; ${KNOWN_AT_TOP}`],
  },
  {
    name: "problems in many places",
    yaml: ["listen: 8080", "shutdown: {grace: soon}", "routes:", "  - name: r", "    upstreams: []"].join(
      "\n",
    ),
    problems: [
      `1:9: listen: ${WANT_ADDRESS}; got 8080`,
      "2:19: shutdown.grace: want a duration as 1h30m, 15s or 20ms; got soon",
      "5:16: routes[0].upstreams: want at least one of the upstreams; got an empty list",
    ],
  },
];

const LISTEN: readonly BadConfig[] = [
  { name: "a port alone", address: "8080" },
  { name: "a port that is too large", address: "127.0.0.1:70000" },
  { name: "an IPv6 address without brackets", address: "::1:8080", shown: "::1:8080" },
  { name: "a mistyped IPv4 address", address: "127.0.0.256:8080" },
  { name: "brackets around something else", address: "'[localhost]:8080'", shown: `"[localhost]:8080"` },
  { name: "an url", address: "http://127.0.0.1:8080" },
  { name: "nothing after the colon", address: "'localhost:'", shown: `"localhost:"` },
  { name: "empty text", address: "''", shown: `""` },
  { name: "a list", address: "[a]", shown: "a list" },
].map(({ name, address, shown }) => ({
  name: `listen: ${name}`,
  yaml: `listen: ${address}\n${WITH_ROUTE}`,
  problems: [`1:9: listen: ${WANT_ADDRESS}; got ${shown ?? address}`],
}));

const LIMITS: readonly BadConfig[] = [
  {
    name: "limits: sizes",
    yaml: [
      WITH_ROUTE,
      "limits:",
      "  max_body_bytes: 32MB",
      "  max_decoded_bytes: 2GiB",
      "  max_label_name_bytes: 0",
      "  max_label_value_bytes: -1",
    ].join("\n"),
    problems: [
      "3:19: limits.max_body_bytes: want a size as 32MiB, 64KiB or a number of bytes; got 32MB",
      "4:22: limits.max_decoded_bytes: want at most 256MiB, more would not fit into the engine's memory; got 2GiB",
      "5:25: limits.max_label_name_bytes: want at least 1 byte; got 0",
      "6:26: limits.max_label_value_bytes: want a size as 32MiB, 64KiB or a number of bytes; got -1",
    ],
  },
  {
    name: "a decision table of nothing, and one that is too large, and too little memory",
    yaml: [
      WITH_ROUTE,
      "memory: {decision_table_series: 0, decision_table_bytes: 3GiB, in_flight_bytes: 1000KiB}",
    ].join("\n"),
    problems: [
      "2:33: memory.decision_table_series: want at least 1; got 0",
      "2:58: memory.decision_table_bytes: want at most 1GiB, the rest of what the engine can address is for requests; got 3GiB",
      "2:81: memory.in_flight_bytes: want at least 1MiB; got 1000KiB",
    ],
  },
  {
    name: "limits: counts and times",
    yaml: [WITH_ROUTE, "limits:", '  max_labels: "5"', "  body_timeout: 0s", "  max_label: 3"].join("\n"),
    problems: [
      `3:15: limits.max_labels: want a whole number; got "5"`,
      "4:17: limits.body_timeout: want at least 1ms; got 0s",
      "5:3: limits.max_label: unknown key; did you mean max_labels?",
    ],
  },
  {
    name: "limits: not a map",
    yaml: `${WITH_ROUTE}\nlimits: 32MiB`,
    problems: ["2:9: limits: want keys and values; got text"],
  },
  {
    name: "shutdown: a drain that is longer than the grace",
    yaml: `${WITH_ROUTE}\nshutdown: {drain_delay: 1m}`,
    problems: [
      "2:25: shutdown.drain_delay: want a drain_delay within the grace; got drain_delay 1m, grace 30s",
    ],
  },
  {
    name: "shutdown: a grace that is shorter than the drain",
    yaml: `${WITH_ROUTE}\nshutdown: {grace: 4s500ms}`,
    problems: [
      "2:19: shutdown.grace: want a drain_delay within the grace; got drain_delay 5s, grace 4s500ms",
    ],
  },
  {
    name: "shutdown: a time beyond all timers",
    yaml: `${WITH_ROUTE}\nshutdown: {grace: 25d}`,
    problems: ["2:19: shutdown.grace: want at most 24d, the longest time of a timer; got 25d"],
  },
];

const ROUTES: readonly BadConfig[] = [
  {
    name: "a route without anything",
    yaml: "routes: [{}]",
    problems: [
      "1:10: routes[0].name: missing; want a name for the route",
      "1:10: routes[0].upstreams: missing; want a list of upstreams",
    ],
  },
  {
    name: "a route that is null",
    yaml: "routes:\n  -\n",
    problems: ["2:4: routes[0]: want keys and values; got nothing"],
  },
  {
    name: "two routes of one name",
    yaml: [
      "routes:",
      "  - {name: r, upstreams: [{name: a, url: http://a/w}]}",
      "  - {name: r, upstreams: [{name: a, url: http://a/w}]}",
    ].join("\n"),
    problems: ["3:12: routes[1].name: want another name; the route at line 2 has this one"],
  },
  {
    name: "names that a log could not show",
    yaml: `routes: [{name: "a\\nb", upstreams: [{name: " a", url: http://a/w}]}]`,
    problems: [
      `1:17: routes[0].name: want at most 200 characters, none of them a control character, no blank at the ends; got "a\\nb"`,
      `1:44: routes[0].upstreams[0].name: want at most 200 characters, none of them a control character, no blank at the ends; got " a"`,
    ],
  },
  {
    name: "an empty name",
    yaml: `routes: [{name: "", upstreams: [{name: "", url: http://a/w}]}]`,
    problems: [
      `1:17: routes[0].name: want some text; got ""`,
      `1:40: routes[0].upstreams[0].name: want some text; got ""`,
    ],
  },
  {
    name: "words that no option has",
    yaml: inRoute(
      "key_format: pair",
      "tasks: {algorithm: ring}",
      "placement: {algorithm: mod, missing_key: drop}",
    ),
    problems: [
      "4:17: routes[0].key_format: want pairs or flat; got pair",
      "5:24: routes[0].tasks.algorithm: want jump or hashmod; got ring",
      "6:28: routes[0].placement.algorithm: want jump, balanced, hashmod, ring, maglev, rendezvous or multi_probe; got mod",
      "6:46: routes[0].placement.missing_key: want one_place or whole_set; got drop",
    ],
  },
  {
    name: "an unknown key and a wrong duration in a route",
    yaml: inRoute("retire_after: soon", "epochs: []"),
    problems: [
      "4:19: routes[0].retire_after: want a duration as 1h30m, 15s or 20ms; got soon",
      `5:5: routes[0].epochs: unknown key; ${KNOWN_IN_ROUTE}`,
    ],
  },
];

const TASKS: readonly BadConfig[] = [
  {
    name: "no tasks",
    yaml: inRoute("tasks: {count: 0}"),
    problems: ["4:20: routes[0].tasks.count: want at least 1; got 0"],
  },
  {
    name: "a fraction of a task",
    yaml: inRoute("tasks: {count: 1.5}"),
    problems: ["4:20: routes[0].tasks.count: want a whole number; got 1.5"],
  },
  {
    name: "more tasks than jump hash can number",
    yaml: inRoute("tasks: {count: 2147483648}"),
    problems: [
      "4:20: routes[0].tasks.count: want at most 2147483647, the most that jump hash can number; got 2147483648",
    ],
  },
  {
    name: "a typo in tasks",
    yaml: inRoute("tasks: {cuont: 128}"),
    problems: ["4:13: routes[0].tasks.cuont: unknown key; did you mean count?"],
  },
  {
    name: "a task label that is the metric's name",
    yaml: inRoute("tasks: {label: __name__}"),
    problems: [
      "4:20: routes[0].tasks.label: want a label of its own, since __name__ is the metric's name; got __name__",
    ],
  },
  {
    name: "a task label that is no label name",
    yaml: inRoute("tasks: {label: task-id}"),
    problems: [
      "4:20: routes[0].tasks.label: want a label name of letters, digits and _, not beginning with a digit; got task-id",
    ],
  },
  {
    name: "by and without",
    yaml: inRoute("tasks: {by: [job], without: [pod]}"),
    problems: ["4:33: routes[0].tasks.without: want either by or without; got both"],
  },
  {
    name: "without nothing",
    yaml: inRoute("tasks: {without: []}"),
    problems: ["4:22: routes[0].tasks.without: want at least one of the label names; got an empty list"],
  },
  {
    name: "label names that are empty, twice, or no text",
    yaml: inRoute("tasks: {by: [job, '', job, [x]]}"),
    problems: [
      `4:23: routes[0].tasks.by[1]: want some text; got ""`,
      "4:27: routes[0].tasks.by[2]: want each once; got job again, as at line 4",
      "4:32: routes[0].tasks.by[3]: want some text; got a list",
    ],
  },
  {
    name: "one label that is not in a list",
    yaml: inRoute("tasks: {by: job}"),
    problems: ["4:17: routes[0].tasks.by: want a list of label names; got text"],
  },
  {
    name: "the task by its own label",
    yaml: inRoute("key_format: flat", "tasks: {label: shard, by: [job, shard]}"),
    problems: [
      "5:31: routes[0].tasks.by: want labels of the series; shard is the task label, which this key is there to find",
    ],
  },
];

const PLACEMENT: readonly BadConfig[] = [
  {
    name: "tasks with nothing behind them",
    yaml: inRoute("tasks:"),
    problems: [
      "4:11: routes[0].tasks: empty; want a map such as {count: 128}, or no such key for no task label",
    ],
  },
  {
    name: "placement by the task of no tasks",
    yaml: inRoute("placement: {key: task}"),
    problems: ["4:22: routes[0].placement.key: task needs tasks in this route; want tasks, or key: series"],
  },
  {
    name: "a key that is no key",
    yaml: inRoute("placement: {key: job}"),
    problems: ["4:22: routes[0].placement.key: want task, series, {by: [...]} or {without: [...]}; got job"],
  },
  {
    name: "a key of by and without",
    yaml: inRoute("placement: {key: {by: [job], without: [pod]}}"),
    problems: ["4:43: routes[0].placement.key.without: want either by or without; got both"],
  },
  {
    name: "a key of neither by nor without",
    yaml: inRoute("placement: {key: {}}"),
    problems: ["4:22: routes[0].placement.key: want by or without; got neither"],
  },
  {
    name: "a key of no labels, which would send everything to one place",
    yaml: inRoute("placement: {key: {by: []}}"),
    problems: ["4:27: routes[0].placement.key.by: want at least one of the label names; got an empty list"],
  },
  {
    name: "the task label in a key of pairs",
    yaml: inRoute("tasks: {}", "placement: {key: {by: [stream_task_id]}}"),
    problems: [
      "5:22: routes[0].placement.key: stream_task_id is the task label; want key: task, or the label only with key_format: flat",
    ],
  },
  {
    name: "a place for missing keys where no key can be missing",
    yaml: inRoute("placement: {key: series, missing_key: whole_set}"),
    problems: [
      "4:43: routes[0].placement.missing_key: whole_set has a meaning only with key: {by: [...]}; leave it out",
    ],
  },
  {
    name: "an option of placement that does not exist",
    yaml: inRoute("placement: {topology: 2}"),
    problems: [
      "4:17: routes[0].placement.topology: unknown key; want one of: key, missing_key, algorithm, ring, maglev, multi_probe, replicas",
    ],
  },
];

describe("a configuration with errors", () => {
  itTellsAll([FILE, LISTEN, LIMITS, ROUTES, TASKS, PLACEMENT].flat());
});
