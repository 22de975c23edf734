/** Routes and aggregation rules with what lint has to say of them: judged in verdict.test.ts, tried out in lintVmagents.test.ts. */
import type { Verdict } from "../../src/lint/judgement.ts";

export interface Pair {
  readonly name: string;
  /** What the routes say, besides names and upstreams, in YAML; the first is judged. */
  readonly route: string;
  /** Further routes, whole, in YAML. */
  readonly others?: readonly string[];
  /** Whether the first is judged by itself, as with --route, and not with the others. */
  readonly alone?: true;
  /** In YAML, without match and interval where it has none of its own; SERIES stands for the metrics of the pair. */
  readonly rule: string;
  /** What vmagent applies before, in YAML. */
  readonly relabel?: string;
  readonly verdict: Verdict;
  /** A label that is named at fault. */
  readonly label?: string;
  /**
   * How two vmagents show that `unsafe` is true: their results differ from those of one, cannot be merged over tasks, are wrong
   * when merged, or are several samples of one series. null for what is not tried out.
   */
  readonly shown?: "differs" | "unmergeable" | "merged_wrong" | "collides" | null;
}

const A = '{name: a, url: "http://a/w"}';
const B = '{name: b, url: "http://b/w"}';
const UPSTREAMS = `upstreams: [${A}, ${B}]`;
const TASKS = `tasks: {count: 64}, ${UPSTREAMS}`;
const TASK = "stream_task_id";

function keyed(key: string, more = ""): string {
  return `placement: {key: ${key}}, ${more === "" ? "" : `${more}, `}${UPSTREAMS}`;
}

/** A further route. */
function also(more: string): string {
  return `{name: more, ${more}}`;
}

function kept(label: string, regex: string): string {
  return rules(`{action: keep, source_labels: [${label}], regex: "${regex}"}`);
}

function rules(list: string): string {
  return `relabel_configs: [${list}]`;
}

function input(list: string): string {
  return `input_relabel_configs: [${list}]`;
}

function unmergeable(output: string): Pair {
  return {
    name: `the task in by, and ${output}`,
    route: TASKS,
    rule: `by: [job, ${TASK}], outputs: ["${output}"]`,
    verdict: "unsafe",
    label: TASK,
    shown: "unmergeable",
  };
}

function placedBy(algorithm: string): Pair {
  return {
    name: `${algorithm} by a label of by`,
    route: `placement: {key: {by: [job]}, algorithm: ${algorithm}}, ${UPSTREAMS}`,
    rule: "by: [job], outputs: [avg]",
    verdict: "safe",
  };
}

export const PAIRS: readonly Pair[] = [
  // Keys of some labels.
  {
    name: "the key is by",
    route: keyed("{by: [job]}"),
    rule: "by: [job], outputs: [sum_samples]",
    verdict: "safe",
  },
  {
    name: "the key is within by",
    route: keyed("{by: [job]}"),
    rule: "by: [job, instance], outputs: [avg]",
    verdict: "safe",
  },
  {
    name: "the key is within by, quantiles",
    route: keyed("{by: [env, job]}"),
    rule: 'by: [env, job, instance], outputs: ["quantiles(0.5, 0.9)"]',
    verdict: "safe",
  },
  {
    name: "by is within the key",
    route: keyed("{by: [env, job]}"),
    rule: "by: [env], outputs: [sum_samples]",
    verdict: "unsafe",
    label: "job",
  },
  {
    name: "the key is nothing of by",
    route: keyed("{by: [instance]}"),
    rule: "by: [job], outputs: [max]",
    verdict: "unsafe",
    label: "instance",
  },
  {
    name: "the key is the metric name, which every by has",
    route: keyed("{by: [__name__]}"),
    rule: "by: [job], outputs: [last]",
    verdict: "safe",
  },
  {
    name: "the metric name in the key, keep_metric_names",
    route: keyed("{by: [__name__, job]}"),
    rule: "by: [job], outputs: [stddev], keep_metric_names: true",
    verdict: "safe",
  },
  {
    name: "the metric name in the key and in without",
    route: keyed("{by: [__name__, job]}"),
    rule: "without: [__name__, instance], outputs: [sum_samples]",
    verdict: "unsafe",
    label: "__name__",
  },
  {
    name: "le in the key and not in by",
    route: keyed("{by: [job, le]}"),
    rule: "by: [job], outputs: [histogram_bucket]",
    verdict: "unsafe",
    label: "le",
  },
  {
    name: "le in the key and in by",
    route: keyed("{by: [job, le]}"),
    rule: "by: [job, le], outputs: [sum_samples]",
    verdict: "safe",
  },
  {
    name: "the key is not in without",
    route: keyed("{by: [job]}"),
    rule: "without: [instance], outputs: [avg]",
    verdict: "safe",
  },
  {
    name: "the key is in without",
    route: keyed("{by: [job, instance]}"),
    rule: "without: [instance], outputs: [avg]",
    verdict: "unsafe",
    label: "instance",
  },
  {
    name: "a key of labels and results for every series",
    route: keyed("{by: [job]}"),
    rule: "outputs: [avg, last]",
    verdict: "safe",
  },
  {
    name: "the key is dropped from the input",
    route: keyed("{by: [job]}"),
    rule: "drop_input_labels: [job], outputs: [max]",
    verdict: "unsafe",
    label: "job",
  },
  {
    name: "the key is in by and dropped from the input",
    route: keyed("{by: [job]}"),
    rule: "by: [job], drop_input_labels: [job], outputs: [max]",
    verdict: "unsafe",
    label: "job",
  },
  {
    name: "another label is dropped from the input",
    route: keyed("{by: [job]}"),
    rule: "drop_input_labels: [instance], outputs: [avg]",
    verdict: "safe",
  },
  {
    name: "deduplication of pairs that come together",
    route: keyed("{by: [instance]}"),
    rule: "by: [instance], drop_input_labels: [replica], dedup_interval: 1m, outputs: [max]",
    verdict: "safe",
  },
  {
    name: "deduplication of pairs that the key parts",
    route: keyed("{by: [instance, replica]}"),
    rule: "by: [instance], drop_input_labels: [replica], dedup_interval: 1m, outputs: [sum_samples]",
    verdict: "unsafe",
    label: "replica",
  },
  placedBy("hashmod"),
  placedBy("ring"),
  placedBy("maglev"),
  placedBy("rendezvous"),
  placedBy("multi_probe"),
  {
    name: "series without the key are in one place",
    route: keyed("{by: [zone, job]}"),
    rule: "by: [job, zone], outputs: [avg]",
    verdict: "safe",
  },
  {
    name: "series without the key go by all labels",
    route: `placement: {key: {by: [job]}, missing_key: whole_set}, ${UPSTREAMS}`,
    rule: "by: [job], outputs: [sum_samples]",
    verdict: "unsafe",
    label: "le",
  },
  {
    name: "series without the key would go by all labels, and match wants the key",
    route: `placement: {key: {by: [job]}, missing_key: whole_set}, ${UPSTREAMS}`,
    rule: "match: ['SERIES{job=\"api\"}', 'SERIES{job=\"auth\"}'], by: [job], outputs: [avg]",
    verdict: "safe",
  },
  {
    name: "a flat key",
    route: keyed("{by: [job]}", "key_format: flat"),
    rule: "by: [job], outputs: [avg]",
    verdict: "safe",
  },
  {
    name: "a flat key of the task and a label",
    route: `key_format: flat, placement: {key: {by: [job, ${TASK}]}}, ${TASKS}`,
    rule: `by: [job, ${TASK}], outputs: [sum_samples]`,
    verdict: "safe",
  },
  {
    name: "the task in by, without tasks",
    route: keyed("series"),
    rule: `by: [job, ${TASK}], outputs: [sum_samples]`,
    verdict: "unsafe",
    label: "le",
  },
  {
    name: "a key of labels in by, and tasks that are not needed",
    route: `placement: {key: {by: [job]}}, ${TASKS}`,
    rule: `by: [job], outputs: [avg]`,
    verdict: "safe",
  },

  // Keys of all labels, or all but some.
  {
    name: "the key and the group leave out the same",
    route: keyed("{without: [instance]}"),
    rule: "without: [instance], outputs: [avg]",
    verdict: "safe",
  },
  {
    name: "the key leaves out more than the group",
    route: keyed("{without: [instance, le]}"),
    rule: "without: [instance], outputs: [avg]",
    verdict: "safe",
  },
  {
    name: "the group leaves out more than the key",
    route: keyed("{without: [instance]}"),
    rule: "without: [instance, le], outputs: [sum_samples]",
    verdict: "unsafe",
    label: "le",
  },
  {
    name: "a key without some labels, and by",
    route: keyed("{without: [instance]}"),
    rule: "by: [job], outputs: [sum_samples]",
    verdict: "unsafe",
    label: "vmrange",
  },
  {
    name: "a key without some labels, and results for every series",
    route: keyed("{without: [instance]}"),
    rule: "outputs: [last]",
    verdict: "safe",
  },
  {
    name: "the whole label set, and results for every series",
    route: keyed("series"),
    rule: "outputs: [avg, increase, last]",
    verdict: "safe",
  },
  {
    name: "the whole label set, and by",
    route: keyed("series"),
    rule: "by: [job], outputs: [sum_samples]",
    verdict: "unsafe",
    label: "le",
  },
  {
    name: "the whole label set, and without",
    route: keyed("series"),
    rule: "without: [instance], outputs: [count_samples]",
    verdict: "unsafe",
    label: "instance",
  },
  {
    name: "the whole label set, and a label dropped from the input",
    route: keyed("series"),
    rule: "drop_input_labels: [replica], outputs: [sum_samples]",
    verdict: "unsafe",
    label: "replica",
  },
  {
    name: "the whole label set, and a rule that removes a label",
    route: keyed("series"),
    rule: `${input("{action: labeldrop, regex: replica}")}, outputs: [sum_samples]`,
    verdict: "unsafe",
    label: "replica",
  },
  {
    name: "the whole label set, and a rule that removes labels by a pattern",
    route: keyed("series"),
    rule: `${input("{action: labeldrop, regex: repl.+}")}, outputs: [sum_samples]`,
    verdict: "unsafe",
    label: "replica",
  },
  {
    name: "the whole label set, and a rule that keeps series",
    route: keyed("series"),
    rule: `${input("{action: keep, source_labels: [env], regex: prod}")}, outputs: [avg]`,
    verdict: "safe",
  },
  {
    name: "the whole label set, and a rule that overwrites a label",
    route: keyed("series"),
    rule: `${input("{target_label: job, replacement: all}")}, outputs: [sum_samples]`,
    verdict: "unsafe",
    label: "job",
  },
  {
    name: "the whole label set, and output rules that remove a label",
    route: keyed("series"),
    rule: "outputs: [max], output_relabel_configs: [{action: labeldrop, regex: env}]",
    verdict: "safe",
  },

  // Tasks.
  {
    name: "the task in by, and a sum",
    route: TASKS,
    rule: `by: [job, ${TASK}], outputs: [sum_samples]`,
    verdict: "safe",
  },
  {
    name: "the task in by, and what is computed for every series",
    route: TASKS,
    rule: `by: [job, ${TASK}], outputs: [increase, increase_prometheus, total, total_prometheus, rate_sum, count_series]`,
    verdict: "safe",
  },
  {
    name: "the task in by, minimum and maximum",
    route: TASKS,
    rule: `by: [job, ${TASK}], outputs: [min, max]`,
    verdict: "safe",
  },
  {
    name: "the task in by, and a histogram",
    route: TASKS,
    rule: `by: [job, ${TASK}], outputs: [histogram_bucket]`,
    verdict: "safe",
  },
  {
    name: "the task not in without",
    route: TASKS,
    rule: "without: [instance, replica], outputs: [sum_samples, count_samples]",
    verdict: "safe",
  },
  {
    name: "the task not in without, and an average",
    route: TASKS,
    rule: "without: [instance, replica], outputs: [avg]",
    verdict: "unsafe",
    label: TASK,
    shown: "unmergeable",
  },
  unmergeable("avg"),
  unmergeable("quantiles(0.5)"),
  unmergeable("stddev"),
  unmergeable("stdvar"),
  unmergeable("unique_samples"),
  unmergeable("rate_avg"),
  { ...unmergeable("last"), shown: null },
  {
    name: "the task not in by",
    route: TASKS,
    rule: "by: [job], outputs: [sum_samples]",
    verdict: "unsafe",
    label: TASK,
  },
  {
    name: "the task in without",
    route: TASKS,
    rule: `without: [instance, ${TASK}], outputs: [sum_samples]`,
    verdict: "unsafe",
    label: TASK,
  },
  { name: "tasks and results for every series", route: TASKS, rule: "outputs: [avg, last]", verdict: "safe" },
  {
    name: "balanced tasks",
    route: `placement: {algorithm: balanced}, ${TASKS}`,
    rule: `by: [job, ${TASK}], outputs: [sum_samples]`,
    verdict: "safe",
  },
  {
    name: "the task dropped from the input",
    route: TASKS,
    rule: `by: [job, ${TASK}], drop_input_labels: [${TASK}], outputs: [sum_samples]`,
    verdict: "unsafe",
    label: TASK,
  },
  {
    name: "the task removed by a rule",
    route: TASKS,
    rule: `by: [job, ${TASK}], ${input(`{action: labeldrop, regex: ${TASK}}`)}, outputs: [sum_samples]`,
    verdict: "unsafe",
    label: TASK,
  },
  {
    name: "the task removed on the way",
    route: `tasks: {count: 64}, upstreams: [{name: a, url: "http://a/w", write_relabel_configs: [{action: labeldrop, regex: stream_.*}]}, {name: b, url: "http://b/w", write_relabel_configs: [{action: labeldrop, regex: stream_.*}]}]`,
    rule: `by: [job, ${TASK}], outputs: [sum_samples]`,
    verdict: "unsafe",
    label: TASK,
  },
  {
    name: "the task removed from the output",
    route: TASKS,
    rule: `by: [job, ${TASK}], outputs: [sum_samples], output_relabel_configs: [{action: labeldrop, regex: ${TASK}}]`,
    verdict: "unsafe",
    label: TASK,
    shown: "collides",
  },
  {
    name: "a task for each group",
    route: `tasks: {count: 64, by: [job]}, ${UPSTREAMS}`,
    rule: "by: [job], outputs: [avg]",
    verdict: "safe",
  },
  {
    name: "a task for each group, and in by",
    route: `tasks: {count: 64, by: [job]}, ${UPSTREAMS}`,
    rule: `by: [job, ${TASK}], outputs: ["quantiles(0.9)"]`,
    verdict: "safe",
  },
  {
    name: "a task for each group, removed from the output",
    route: `tasks: {count: 64, by: [job]}, ${UPSTREAMS}`,
    rule: `by: [job, ${TASK}], outputs: [avg], output_relabel_configs: [{action: labeldrop, regex: ${TASK}}]`,
    verdict: "safe",
  },
  {
    name: "tasks by more than the group has",
    route: `tasks: {count: 64, by: [job, instance]}, ${UPSTREAMS}`,
    rule: "by: [job], outputs: [avg]",
    verdict: "unsafe",
    label: "instance",
  },
  {
    name: "tasks without what the group leaves out",
    route: `tasks: {count: 64, without: [instance]}, ${UPSTREAMS}`,
    rule: `without: [instance, ${TASK}], outputs: [avg]`,
    verdict: "safe",
  },
  {
    name: "tasks without what the group leaves out, and the task in it",
    route: `tasks: {count: 64, without: [instance]}, ${UPSTREAMS}`,
    rule: "without: [instance], outputs: [avg]",
    verdict: "safe",
  },
  {
    name: "tasks by a label that is not in without",
    route: `tasks: {count: 64, by: [job]}, ${UPSTREAMS}`,
    rule: "without: [instance], outputs: [unique_samples]",
    verdict: "safe",
  },
  {
    name: "one task",
    route: `tasks: {count: 1}, ${UPSTREAMS}`,
    rule: "by: [job], outputs: [avg]",
    verdict: "safe",
  },
  {
    name: "series that become one in several tasks, counted",
    route: TASKS,
    rule: `by: [job, ${TASK}], drop_input_labels: [replica], outputs: [count_series]`,
    verdict: "unsafe",
    label: "replica",
    shown: "merged_wrong",
  },
  {
    name: "series that become one in several tasks, added up",
    route: TASKS,
    rule: `by: [job, ${TASK}], drop_input_labels: [replica], outputs: [sum_samples]`,
    verdict: "safe",
  },
  {
    name: "series that become one in several tasks, deduplicated",
    route: TASKS,
    rule: `by: [job, ${TASK}], drop_input_labels: [replica], dedup_interval: 1m, outputs: [sum_samples]`,
    verdict: "unsafe",
    label: "replica",
    shown: "merged_wrong",
  },
  {
    name: "series that become one in one task, deduplicated",
    route: `tasks: {count: 64, without: [replica]}, ${UPSTREAMS}`,
    rule: `by: [job, ${TASK}], drop_input_labels: [replica], dedup_interval: 1m, outputs: [max]`,
    verdict: "safe",
  },

  // What match says.
  {
    name: "match fixes a label of the key",
    route: keyed("{by: [env, job]}"),
    rule: "match: 'SERIES{env=\"prod\"}', by: [job], outputs: [avg]",
    verdict: "safe",
  },
  {
    name: "match leaves a label of the key two values",
    route: keyed("{by: [env, job]}"),
    rule: "match: 'SERIES{env=~\"prod|dev\"}', by: [job], outputs: [sum_samples]",
    verdict: "unsafe",
    label: "env",
  },
  {
    name: "match fixes the task",
    route: `tasks: {count: 16}, ${UPSTREAMS}`,
    rule: `match: 'SERIES{${TASK}="7"}', by: [job], outputs: [avg]`,
    verdict: "safe",
  },
  {
    name: "match selects nothing",
    route: keyed("{by: [job]}"),
    rule: "match: '{}', by: [job], outputs: [avg]",
    verdict: "unknown",
  },
  {
    name: "match fixes a label that a rule has changed",
    route: keyed("{by: [env, job]}"),
    relabel: "[{target_label: env, replacement: prod}]",
    rule: "match: 'SERIES{env=\"prod\"}', by: [job], outputs: [sum_samples]",
    verdict: "unsafe",
    label: "env",
  },

  // Rules on the way.
  {
    name: "vmagent drops series",
    route: keyed("{by: [job]}"),
    relabel: "[{action: drop, source_labels: [env], regex: dev}]",
    rule: "by: [job], outputs: [avg]",
    verdict: "safe",
  },
  {
    name: "vmagent drops series, and the key is the whole label set",
    route: keyed("series"),
    relabel: "[{action: drop, source_labels: [env], regex: dev}]",
    rule: "outputs: [avg]",
    verdict: "safe",
  },
  {
    name: "vmagent removes a label of the key",
    route: keyed("{by: [env, job]}"),
    relabel: "[{action: labeldrop, regex: env}]",
    rule: "by: [env, job], outputs: [max]",
    verdict: "unsafe",
    label: "env",
  },
  {
    name: "vmagent overwrites a label of the key",
    route: keyed("{by: [env, job]}"),
    relabel: "[{target_label: env, replacement: all}]",
    rule: "by: [env, job], outputs: [max]",
    verdict: "unsafe",
    label: "env",
  },
  {
    name: "vmagent adds a label",
    route: keyed("{by: [env, job]}"),
    relabel: "[{action: hashmod, source_labels: [instance], modulus: 4, target_label: part}]",
    rule: "by: [env, job, part], outputs: [avg]",
    verdict: "safe",
  },
  {
    name: "a rule copies a label over the key",
    route: keyed("{by: [job]}"),
    rule: `by: [job], ${input("{source_labels: [env], regex: (.+), target_label: job}")}, outputs: [sum_samples]`,
    verdict: "unsafe",
    label: "job",
  },
  {
    name: "a rule shortens a label of the key",
    route: keyed("{by: [instance]}"),
    rule: `by: [instance], ${input('{source_labels: [instance], regex: "host-\\\\d+:(.+)", target_label: instance}')}, outputs: [sum_samples]`,
    verdict: "unsafe",
    label: "instance",
    shown: "differs",
  },
  {
    name: "a rule maps any label",
    route: keyed("{by: [job]}"),
    rule: `by: [job], ${input("{action: labelmap, regex: host_(.+)}")}, outputs: [avg]`,
    verdict: "unknown",
    label: "job",
  },
  {
    name: "a rule changes the case of the key",
    route: keyed("{by: [env]}"),
    rule: `by: [env], ${input("{action: lowercase, source_labels: [env], target_label: env}")}, outputs: [avg]`,
    verdict: "unknown",
    label: "env",
  },
  {
    name: "a rule keeps the labels of the key",
    route: keyed("{by: [job]}"),
    rule: `by: [job], ${input("{action: labelkeep, regex: __name__|job|env}")}, outputs: [avg]`,
    verdict: "safe",
  },
  {
    name: "a rule keeps labels by a pattern that takes the key",
    route: keyed("{by: [job]}"),
    rule: `by: [job], ${input("{action: labelkeep, regex: __name__|jo.+}")}, outputs: [avg]`,
    verdict: "safe",
  },
  {
    name: "a rule keeps labels without the key",
    route: keyed("{by: [job]}"),
    rule: `by: [job], ${input("{action: labelkeep, regex: __name__|env}")}, outputs: [max]`,
    verdict: "unsafe",
    label: "job",
  },
  {
    name: "upstreams have different rules that leave the key alone",
    route: `placement: {key: {by: [job]}}, upstreams: [{name: a, url: "http://a/w", write_relabel_configs: [{action: labeldrop, regex: instance}]}, ${B}]`,
    rule: "by: [job], outputs: [avg]",
    verdict: "safe",
  },
  {
    name: "an upstream has a rule that changes the key",
    route: `placement: {key: {by: [env]}}, upstreams: [{name: a, url: "http://a/w", write_relabel_configs: [{target_label: env, replacement: there}]}, ${B}]`,
    rule: "by: [env], outputs: [avg]",
    verdict: "unknown",
    label: "env",
  },
  {
    name: "the route removes before keying what the group leaves out",
    route: `${rules("{action: labeldrop, regex: instance|replica}")}, ${TASKS}`,
    rule: `without: [instance, ${TASK}], outputs: [sum_samples]`,
    verdict: "safe",
  },
  {
    name: "the route keeps one value of a label of the key",
    route: keyed("{by: [env, job]}", rules("{action: keep, source_labels: [env], regex: prod}")),
    rule: "by: [job], outputs: [avg]",
    verdict: "safe",
  },
  {
    name: "the route keeps several values of a label of the key",
    route: keyed("{by: [env, job]}", rules("{action: keep, source_labels: [env], regex: prod|dev}")),
    rule: "by: [job], outputs: [sum_samples]",
    verdict: "unsafe",
    label: "env",
  },
  {
    name: "the tenant in the key",
    route: keyed("{by: [tenant, job]}", "tenant: {label: tenant}"),
    rule: "by: [job], outputs: [avg]",
    verdict: "unsafe",
    label: "tenant",
    shown: null,
  },

  // Copies.
  {
    name: "replicas",
    route: `placement: {key: {by: [job]}, replicas: 2}, ${UPSTREAMS}`,
    rule: "by: [job], outputs: [sum_samples]",
    verdict: "unsafe",
  },
  {
    name: "replicas and deduplication",
    route: `placement: {key: {by: [job]}, replicas: 2}, ${UPSTREAMS}`,
    rule: "by: [job], dedup_interval: 1m, outputs: [max]",
    verdict: "unsafe",
  },
  {
    name: "two routes into one aggregator",
    route: keyed("{by: [job]}"),
    others: [`{name: more, upstreams: [${A}]}`],
    rule: "by: [job], outputs: [sum_samples]",
    verdict: "unsafe",
  },
  {
    name: "two routes into one aggregator, apart by a label of the group",
    route: keyed("{by: [job]}", `final: true, ${rules("{action: keep, source_labels: [job], regex: api}")}`),
    others: [`{name: more, placement: {key: {by: [job]}}, upstreams: [${B}, ${A}]}`],
    rule: "by: [job], outputs: [avg]",
    verdict: "safe",
  },
  {
    name: "two routes into one aggregator, apart by a label that is not in the group",
    route: keyed("{by: [job]}", `final: true, ${rules("{action: keep, source_labels: [env], regex: prod}")}`),
    others: [`{name: more, placement: {key: {by: [job]}}, upstreams: [${B}, ${A}]}`],
    rule: "by: [job], outputs: [sum_samples]",
    verdict: "unsafe",
    label: "env",
  },
  {
    name: "two routes into one aggregator, by two of its paths",
    route: `placement: {key: {by: [job]}}, upstreams: [{name: a, url: "http://a/api/v1/write"}, ${B}]`,
    others: [also('upstreams: [{name: c, url: "http://a:80/prometheus/api/v1/push"}]')],
    alone: true,
    rule: "by: [job], outputs: [sum_samples]",
    verdict: "unsafe",
  },
  {
    name: "two routes into two paths of one address",
    route: 'upstreams: [{name: a, url: "http://a/insert/0"}]',
    others: [also('upstreams: [{name: c, url: "http://a/insert/1"}]')],
    alone: true,
    rule: "by: [job], outputs: [sum_samples]",
    verdict: "unknown",
  },
  {
    name: "two routes into two paths of one address, apart by a label of the group",
    route: `${kept("job", "api")}, upstreams: [{name: a, url: "http://a/insert/0"}]`,
    others: [also(`${kept("job", "auth")}, upstreams: [{name: c, url: "http://a/insert/1"}]`)],
    alone: true,
    rule: "by: [job], outputs: [sum_samples]",
    verdict: "safe",
  },
  {
    name: "two routes that take the same series to different aggregators",
    route: `upstreams: [${A}]`,
    others: [also(`upstreams: [${B}]`)],
    rule: "by: [job], outputs: [sum_samples]",
    verdict: "unsafe",
  },
  {
    name: "two routes that take some of the same series to different aggregators",
    route: `${kept("job", "api")}, upstreams: [${A}]`,
    others: [also(`${kept("env", "prod")}, upstreams: [${B}]`)],
    rule: "by: [job, env], outputs: [sum_samples]",
    verdict: "unsafe",
  },
  {
    name: "a second route to other upstreams, not judged with it",
    route: keyed("{by: [job]}"),
    others: ['{name: more, upstreams: [{name: c, url: "http://c/w"}]}'],
    alone: true,
    rule: "by: [job], outputs: [avg]",
    verdict: "safe",
  },
  {
    name: "two routes that select by several labels, and one selects what the other does",
    route: `${rules('{action: keep, source_labels: [env, job], regex: "prod;.+"}')}, upstreams: [${A}]`,
    others: [also(`${kept("job", "[ab].i")}, upstreams: [${B}]`)],
    rule: "by: [job], outputs: [sum_samples]",
    verdict: "unsafe",
  },
  {
    name: "two routes with parts of one group",
    route: `${kept("job", "api")}, upstreams: [${A}]`,
    others: [also(`${kept("job", "auth")}, upstreams: [${B}]`)],
    rule: "by: [env], outputs: [sum_samples]",
    verdict: "unsafe",
    label: "job",
  },
  {
    name: "two routes with parts of one group, and what parts them in it",
    route: `${kept("job", "api")}, upstreams: [${A}]`,
    others: [also(`${kept("job", "auth")}, upstreams: [${B}]`)],
    rule: "by: [env, job], outputs: [avg]",
    verdict: "safe",
  },
  {
    name: "a route that drops what the other keeps, by a label of the group",
    route: `${kept("job", "ap.+")}, upstreams: [${A}]`,
    others: [also(`${rules('{action: drop, source_labels: [job], regex: "ap.+"}')}, upstreams: [${B}]`)],
    rule: "without: [instance], outputs: [avg]",
    verdict: "safe",
  },
  {
    name: "a route that drops what the other keeps, by a label that is not in the group",
    route: `${kept("job", "ap.+")}, upstreams: [${A}]`,
    others: [also(`${rules('{action: drop, source_labels: [job], regex: "ap.+"}')}, upstreams: [${B}]`)],
    rule: "without: [instance, job], outputs: [count_samples]",
    verdict: "unsafe",
    label: "job",
  },
  {
    name: "a final route that selects by a label of the group",
    route: `final: true, ${kept("env", "pr.+")}, ${keyed("{by: [job]}")}`,
    others: [also(`upstreams: [${B}]`)],
    rule: "by: [job, env], outputs: [avg]",
    verdict: "safe",
  },
  {
    name: "a final route that selects by a label that is not in the group",
    route: `final: true, ${kept("env", "pr.+")}, upstreams: [${A}]`,
    others: [also(`upstreams: [${B}]`)],
    rule: "by: [job], outputs: [sum_samples]",
    verdict: "unsafe",
    label: "env",
  },
  {
    name: "a final route that selects by labels in a condition, which are not in the group",
    route: `final: true, relabel_dialect: victoriametrics, ${rules('{action: keep, if: \'{env="prod",le!="2"}\'}')}, upstreams: [${A}]`,
    others: [also(`upstreams: [${B}]`)],
    rule: "by: [job], outputs: [sum_samples]",
    verdict: "unsafe",
    label: "env",
  },
  {
    name: "a final route that selects by a label that is not in the group, not judged with it",
    route: `final: true, ${kept("env", "pr.+")}, upstreams: [${A}]`,
    others: [also('upstreams: [{name: c, url: "http://c/w"}]')],
    alone: true,
    rule: "by: [job], outputs: [sum_samples]",
    verdict: "safe",
  },
  {
    name: "a final route that selects by a label that is not in the group, to the same vmagent as the other",
    route: `final: true, ${kept("env", "pr.+")}, upstreams: [${A}]`,
    others: [also(`upstreams: [${A}]`)],
    rule: "by: [job], outputs: [avg]",
    verdict: "safe",
  },
  {
    name: "a second route that has nothing of what match selects",
    route: `${kept("job", "ap.+")}, upstreams: [${A}]`,
    others: [also(`${kept("job", "au.+")}, upstreams: [${B}]`)],
    rule: "match: 'SERIES{job=\"api\"}', by: [env], outputs: [avg]",
    verdict: "safe",
  },
  {
    name: "routes that mark their series in the group",
    route: `${rules("{target_label: way, replacement: one}")}, upstreams: [${A}]`,
    others: [also(`${rules("{target_label: way, replacement: other}")}, upstreams: [${B}]`)],
    rule: "by: [job, way], outputs: [avg]",
    verdict: "safe",
    shown: null,
  },
  {
    name: "routes that mark their series by a label that vmagent's dialect takes away",
    route: `relabel_dialect: victoriametrics, ${rules("{target_label: __way, replacement: one}")}, upstreams: [${A}]`,
    others: [
      also(
        `relabel_dialect: victoriametrics, ${rules("{target_label: __way, replacement: other}")}, upstreams: [${B}]`,
      ),
    ],
    rule: "without: [instance], outputs: [sum_samples]",
    verdict: "unsafe",
  },
  {
    name: "two routes that patterns keep apart",
    route: `${kept("job", "ap.+")}, upstreams: [${A}]`,
    others: [also(`${kept("job", "au.+")}, upstreams: [${B}]`)],
    rule: "by: [job], outputs: [avg]",
    verdict: "unknown",
  },
  {
    name: "one upstream",
    route: `tasks: {count: 64}, upstreams: [${A}]`,
    rule: "by: [job], outputs: [avg]",
    verdict: "safe",
  },
  {
    name: "one upstream and a tombstone",
    route: `upstreams: [{name: b, removed: true}, ${A}]`,
    rule: "by: [job], outputs: [avg]",
    verdict: "safe",
  },
  {
    name: "two names of one upstream",
    route:
      'placement: {key: series}, upstreams: [{name: a, url: "http://a/w"}, {name: b, url: "http://a/w"}]',
    rule: "by: [job], outputs: [avg]",
    verdict: "safe",
  },
  {
    name: "two paths of one vmagent",
    route: `placement: {key: series}, upstreams: [{name: a, url: "http://a/api/v1/write"}, {name: b, url: "http://A:80//prometheus/api/v1/push"}]`,
    rule: "by: [job], outputs: [avg]",
    verdict: "safe",
  },
  {
    name: "two paths of one address, which a proxy may part",
    route: `placement: {key: series}, upstreams: [{name: a, url: "http://a/insert/0"}, {name: b, url: "http://a/insert/1"}]`,
    rule: "by: [job], outputs: [avg]",
    verdict: "unknown",
  },
  {
    name: "two paths of one address, and a key that fits",
    route: `placement: {key: {by: [job]}}, upstreams: [{name: a, url: "http://a/insert/0"}, {name: b, url: "http://a/insert/1"}]`,
    rule: "by: [job], outputs: [avg]",
    verdict: "safe",
  },

  // Tasks that nothing but the results shows.
  {
    name: "one upstream, and an average of each task",
    route: `tasks: {count: 16}, upstreams: [${A}]`,
    rule: "without: [instance, replica], outputs: [avg]",
    verdict: "unsafe",
    label: TASK,
    shown: "unmergeable",
  },
  {
    name: "one upstream, and a sum of each task",
    route: `tasks: {count: 16}, upstreams: [${A}]`,
    rule: "without: [instance, replica], outputs: [sum_samples]",
    verdict: "safe",
  },
  {
    name: "one upstream, and series that become one in several tasks, counted",
    route: `tasks: {count: 16}, upstreams: [${A}]`,
    rule: `by: [job, ${TASK}], drop_input_labels: [replica], outputs: [count_series]`,
    verdict: "unsafe",
    label: "replica",
    shown: "merged_wrong",
  },
  {
    name: "one upstream, and the task removed from the output",
    route: `tasks: {count: 16}, upstreams: [${A}]`,
    rule: `by: [job, ${TASK}], outputs: [sum_samples], output_relabel_configs: [{action: labeldrop, regex: ${TASK}}]`,
    verdict: "unsafe",
    label: TASK,
    shown: "collides",
  },
  {
    name: "one upstream, and one task",
    route: `tasks: {count: 1}, upstreams: [${A}]`,
    rule: "without: [instance], outputs: [avg]",
    verdict: "safe",
  },
  {
    name: "one upstream, and a task for each group",
    route: `tasks: {count: 64, by: [job]}, upstreams: [${A}]`,
    rule: "without: [instance], outputs: [avg]",
    verdict: "safe",
  },
  {
    name: "one upstream, and the task removed before the groups",
    route: `tasks: {count: 64}, upstreams: [${A}]`,
    rule: `without: [instance], ${input(`{action: labeldrop, regex: "stream_.+"}`)}, outputs: [avg]`,
    verdict: "safe",
  },
  {
    name: "one upstream, and a rule that makes a label of the task",
    route: `tasks: {count: 64}, upstreams: [${A}]`,
    rule: `by: [job, part], ${input(`{source_labels: [${TASK}], target_label: part}`)}, outputs: [avg]`,
    verdict: "unknown",
    label: TASK,
  },
  {
    name: "the task in by, and output rules that make a label of it",
    route: TASKS,
    rule: `by: [job, ${TASK}], outputs: [sum_samples], output_relabel_configs: [{source_labels: [${TASK}], target_label: part}]`,
    verdict: "unknown",
    label: TASK,
  },
  {
    name: "tasks that all live on one of two upstreams, and an average of each",
    route: `tasks: {count: 2}, ${UPSTREAMS}`,
    rule: `by: [job, ${TASK}], outputs: [avg]`,
    verdict: "unsafe",
    label: TASK,
    shown: "unmergeable",
  },
  {
    name: "a key of labels in by, and an average of each task",
    route: `placement: {key: {by: [job]}}, ${TASKS}`,
    rule: `by: [job, ${TASK}], outputs: [avg]`,
    verdict: "unsafe",
    label: TASK,
    shown: "unmergeable",
  },
  {
    name: "a key of labels in by, and a sum of each task",
    route: `placement: {key: {by: [job]}}, ${TASKS}`,
    rule: `by: [job, ${TASK}], outputs: [sum_samples]`,
    verdict: "safe",
  },

  // What is not known.
  {
    name: "a key of a newer vmagent",
    route: keyed("{by: [job]}"),
    rule: "by: [job], outputs: [avg], shard_by: [env]",
    verdict: "unknown",
  },
  {
    name: "an output of a newer vmagent",
    route: keyed("{by: [job]}"),
    rule: "by: [job], outputs: [median]",
    verdict: "unknown",
  },
  {
    name: "the environment of vmagent",
    route: keyed("{by: [job]}"),
    rule: 'by: [job, "%{GROUP}"], outputs: [avg]',
    verdict: "unknown",
  },
];

/** A gateway's configuration with the routes of a pair. */
export function configText({ route, others = [] }: Pair): string {
  return `routes: [{name: judged, ${route}}, ${others.join(", ")}]`;
}

/** An aggregation file with the rule of a pair. @param series selects the metrics of the pair */
export function ruleText({ rule }: Pair, series: string, interval = "1m"): string {
  const match = /^match:|, match:/.test(rule) ? "" : `match: '${series}', `;
  const filled = rule.replaceAll("SERIES{", series.replace(/\}$/, ","));
  return `[{interval: ${interval}, ${match}${filled}}]`;
}
