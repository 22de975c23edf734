/** Files of stream aggregation that vmagent 1.145 takes and does not take. */

export const EVERY_KEY = `- name: requests
  match: ['{job="a"}', up]
  interval: 1m30s
  no_align_flush_to_interval: yes
  flush_on_shutdown: false
  dedup_interval: 30s
  staleness_interval: 1.5h
  ignore_first_sample_interval: 500ms
  by: [job, env]
  outputs: [sum_samples, "quantiles(0.5, 0.9)"]
  keep_metric_names: off
  ignore_old_samples: true
  ignore_first_intervals: 2
  drop_input_labels: [replica]
  enable_windows: on
  input_relabel_configs:
    - {action: labeldrop, regex: pod}
  output_relabel_configs:
    - {target_label: tier, replacement: one}
- match: up
  interval: 1s
  without: [instance]
  keep_metric_names: true
  outputs: [count_series]
`;

interface BadAggregation {
  readonly name: string;
  readonly text: string;
  readonly message: string;
}

export const BAD_AGGREGATIONS: readonly BadAggregation[] = [
  {
    name: "a map",
    text: "interval: 1m",
    message: "aggr.yaml:1:1: want a list of aggregation rules; got a map",
  },
  {
    name: "a rule that is text",
    text: "- avg",
    message: "aggr.yaml:1:3: [0]: want keys and values; got text",
  },
  {
    name: "no interval",
    text: "- outputs: [avg]",
    message: "aggr.yaml:1:3: [0].interval: missing; want a duration",
  },
  {
    name: "no outputs",
    text: "- interval: 1m",
    message: "aggr.yaml:1:3: [0].outputs: missing; want a list of outputs",
  },
  {
    name: "an empty list of outputs",
    text: "- {interval: 1m, outputs: []}",
    message: "[0].outputs: want at least one",
  },
  {
    name: "an interval in days",
    text: "- {interval: 1d, outputs: [avg]}",
    message: "aggr.yaml:1:14: [0].interval: want a duration as 1h30m, 15s or 500ms; got 1d",
  },
  {
    name: "a short interval",
    text: "- {interval: 500ms, outputs: [avg]}",
    message: "[0].interval: want at least 1s",
  },
  {
    name: "by and without",
    text: "- {interval: 1m, outputs: [avg], by: [a], without: [b]}",
    message: "[0].without: want either by or without",
  },
  {
    name: "one label that is no list",
    text: "- {interval: 1m, outputs: [avg], by: job}",
    message: "[0].by: want a list of label names",
  },
  {
    name: "a selector that is none",
    text: "- {interval: 1m, outputs: [avg], match: '{a=}'}",
    message: "[0].match: want a series selector",
  },
  {
    name: "a relabel rule that lacks something",
    text: "- {interval: 1m, outputs: [avg], input_relabel_configs: [{action: keep}]}",
    message: "rule 1: keep wants source_labels",
  },
  {
    name: "one name for several outputs",
    text: "- {interval: 1m, outputs: [min, max], keep_metric_names: true}",
    message: "[0].keep_metric_names: wants one output",
  },
  {
    name: "an output twice",
    text: "- {interval: 1m, outputs: [min, min]}",
    message: "[0].outputs[1]: want each once",
  },
  {
    name: "deduplication that does not divide the interval",
    text: "- {interval: 1m, dedup_interval: 40s, outputs: [avg]}",
    message: "[0].dedup_interval: want a divisor of the interval",
  },
  {
    name: "deduplication over more than the interval",
    text: "- {interval: 1m, dedup_interval: 1h, outputs: [avg]}",
    message: "[0].dedup_interval: want at most the interval",
  },
  {
    name: "a state that is shorter than the interval",
    text: "- {interval: 1m, staleness_interval: 1.5s, outputs: [avg]}",
    message: "[0].staleness_interval: want at least the interval",
  },
  {
    name: "a flag that is neither true nor false",
    text: "- {interval: 1m, outputs: [avg], enable_windows: 2}",
    message: "[0].enable_windows: want true or false",
  },
];
