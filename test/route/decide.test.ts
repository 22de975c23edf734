import { describe, expect, it } from "vitest";
import type { RelabelRuleList } from "../../src/relabel/options.ts";
import type { DecisionWitness, TellRule } from "../../src/route/decide.ts";
import type { RouteOptions } from "../../src/route/options.ts";
import { compilePlacer } from "../../src/route/place.ts";
import {
  type CopyOutcome,
  decisionOf,
  type Outcome,
  outcomeOf,
  type Pairs,
  placedOf,
  type Setting,
} from "./decided.ts";
import {
  EXAMPLE_TASKS,
  exampleRoute,
  type ExampleSlot,
  type RouteChanges,
  slotsOf,
  spansOf,
  TASK_LABEL,
} from "./exampleRoute.ts";
import { copy, drop, join, keep, labelDrop, labelKeep, labelMap, rulesOf, set } from "./rules.ts";
import { ruleOf } from "../relabel/rule.ts";

const UP: Pairs = [
  ["__name__", "up"],
  ["job", "node"],
];
/** A route without tasks: what leaves has no label that rules did not make. */
const PLAIN: RouteChanges = {
  tasks: null,
  placement: { key: { kind: "all" }, algorithm: "jump", missingKey: "one_place", replicas: 1 },
};
const TENANT = { header: "x-scope-orgid", label: "tenant", pass: false };
const UPSTREAMS = ["vmagent-0", "vmagent-1", "vmagent-2"];

/** The same rules at every upstream. */
function written(list: RelabelRuleList): ExampleSlot[] {
  return slotsOf(...UPSTREAMS).map((slot) => ({ ...slot, writeRelabel: list }));
}

function route(changes: RouteChanges): RouteChanges {
  return { ...PLAIN, ...changes };
}

interface Row extends Setting {
  readonly name: string;
  readonly labels: Pairs;
  readonly outcome: Outcome;
}

function expectOutcome({ labels, outcome, ...setting }: Row): void {
  expect(outcomeOf(labels, setting)).toEqual(outcome);
}

describe("checks at the door", () => {
  it.each<Row>([
    {
      name: "a label too long that a global rule would remove",
      labels: [...UP, ["path", "x".repeat(50)]],
      globalRules: [labelDrop("path")],
      routes: [PLAIN],
      limits: { maxLabelValueBytes: 40 },
      outcome: "refused: label_value_too_long",
    },
    {
      name: "a label more than are allowed, which a route's rule would remove",
      labels: [...UP, ["path", "x"]],
      routes: [route({ relabel: rulesOf(labelDrop("path")) })],
      limits: { maxLabels: 2 },
      outcome: "refused: too_many_labels",
    },
    {
      name: "a name that is there twice in a series that a global rule would drop",
      labels: [...UP, ["job", "other"]],
      globalRules: [drop("__name__", "up")],
      routes: [PLAIN],
      outcome: "refused: duplicate_label_name",
    },
    {
      name: "an empty name in a series that no route would keep",
      labels: [["", "x"], ...UP],
      routes: [route({ relabel: rulesOf(drop("__name__", "up")) })],
      outcome: "refused: empty_label_name",
    },
  ])("come before all rules: $name", expectOutcome);
});

describe("global rules", () => {
  it("drop a series before any route has it", () => {
    const outcome = outcomeOf(UP, { globalRules: [drop("job", "node")], routes: [PLAIN, {}] });
    expect(outcome).toBe("dropped: relabel_configs");
  });

  it("change what all routes see", () => {
    const globalRules = [set("job", "global")];
    const routes = [PLAIN, route({ relabel: rulesOf(keep("job", "node")) })];
    expect(outcomeOf(UP, { globalRules, routes })).toEqual([
      [
        ["__name__", "up"],
        ["job", "global"],
      ],
      "not_selected",
    ]);
  });

  it.each<Row>([
    {
      name: "they do not see it",
      labels: UP,
      tenant: "acme",
      globalRules: [drop("tenant", "acme"), copy("tenant", "seen")],
      routes: [route({ tenant: TENANT })],
      outcome: [[...UP, ["tenant", "acme"]]],
    },
    {
      name: "what they set in its place is overwritten",
      labels: UP,
      tenant: "acme",
      globalRules: [set("tenant", "forged")],
      routes: [route({ tenant: TENANT })],
      outcome: [[...UP, ["tenant", "acme"]]],
    },
    {
      name: "what they set in its place is removed when the request names no tenant",
      labels: UP,
      globalRules: [set("tenant", "forged")],
      routes: [route({ tenant: TENANT })],
      outcome: [UP],
    },
  ])("come before the tenant's label: $name", expectOutcome);

  it("come before the rules of routes, and are not checked by themselves", () => {
    const setting: Setting = {
      globalRules: [set("path", "x".repeat(50)), labelDrop("__name__")],
      routes: [route({ relabel: rulesOf(labelDrop("path"), set("__name__", "down")) }), PLAIN],
      limits: { maxLabelValueBytes: 40 },
    };
    expect(outcomeOf(UP, setting)).toEqual([
      [
        ["__name__", "down"],
        ["job", "node"],
      ],
      "dropped: no_metric_name",
    ]);
  });
});

describe("the tenant's label", () => {
  it.each<Row>([
    {
      name: "is put before the first label with a greater name, among labels that keep their order",
      labels: [["zone", "z"], ...UP],
      tenant: "acme",
      routes: [route({ tenant: TENANT })],
      outcome: [[["tenant", "acme"], ["zone", "z"], ...UP]],
    },
    {
      name: "overwrites one that came in",
      labels: [...UP, ["tenant", "forged"]],
      tenant: "acme",
      routes: [route({ tenant: TENANT })],
      outcome: [[...UP, ["tenant", "acme"]]],
    },
    {
      name: "takes one away that came in when the request names no tenant",
      labels: [...UP, ["tenant", "forged"], ["zone", "z"]],
      routes: [route({ tenant: TENANT })],
      outcome: [[...UP, ["zone", "z"]]],
    },
    {
      name: "stays where it came in with the same value",
      labels: [["tenant", "acme"], ...UP],
      tenant: "acme",
      routes: [route({ tenant: TENANT })],
      outcome: [[["tenant", "acme"], ...UP]],
    },
    {
      name: "is no label where the route has none",
      labels: [...UP, ["tenant", "mine"]],
      tenant: "acme",
      routes: [route({ tenant: { ...TENANT, label: null, pass: true } })],
      outcome: [[...UP, ["tenant", "mine"]]],
    },
    {
      name: "is none of the labels that are counted",
      labels: UP,
      tenant: "acme",
      routes: [{ tenant: TENANT, upstreams: written(rulesOf(set("a", "1"), labelDrop("job"))) }],
      limits: { maxLabels: 2 },
      outcome: [
        [
          ["__name__", "up"],
          ["a", "1"],
          [TASK_LABEL, taskOf([...UP, ["tenant", "acme"]])],
          ["tenant", "acme"],
        ],
      ],
    },
  ])("$name", expectOutcome);

  it.each<Row>([
    {
      name: "they select by it",
      labels: UP,
      tenant: "acme",
      routes: [
        route({ tenant: TENANT, relabel: rulesOf(keep("tenant", "acme")) }),
        route({ tenant: TENANT, relabel: rulesOf(drop("tenant", "acme")) }),
      ],
      outcome: [[...UP, ["tenant", "acme"]], "not_selected"],
    },
    {
      name: "they have the last word about it",
      labels: UP,
      tenant: "acme",
      routes: [route({ tenant: TENANT, relabel: rulesOf(set("tenant", "all")) })],
      outcome: [[...UP, ["tenant", "all"]]],
    },
  ])("comes before the rules of the route: $name", expectOutcome);

  it("is part of the key", () => {
    const setting = { tenant: "acme", routes: [{ tenant: TENANT }] };
    const place = compilePlacer(exampleRoute());
    expect(placedOf(UP, setting)).toEqual(place(spansOf([...UP, ["tenant", "acme"]])));
    expect(placedOf(UP, { routes: [{ tenant: TENANT }] })).toEqual(place(spansOf(UP)));
  });
});

describe("rules that make values grow without end", () => {
  /** Each makes the value four times as long; a value of 100 bytes would have 26 million in the end, and the last one hides it. */
  const growing = [
    ...Array.from({ length: 9 }, () => join("a", "a", "a", "a")),
    ruleOf({ action: "labeldrop", regex: "a" }),
  ];
  const labels: Pairs = [...UP, ["a", "x".repeat(100)]];
  const limits = { maxLabelValueBytes: 1000 };

  it("have the series dropped where the limit is far behind, whatever later rules would do", () => {
    const last = { ...PLAIN, upstreams: [{ name: "only", writeRelabel: rulesOf(...growing) }] };
    const routes = [route({ relabel: rulesOf(...growing) }), last, PLAIN];
    const gone = "dropped: label_value_too_long";
    expect(outcomeOf(labels, { routes, limits })).toEqual([gone, gone, labels]);
    expect(outcomeOf(labels, { routes, limits, globalRules: growing })).toBe(gone);
  });

  it("may make a longer one on the way than may leave", () => {
    const [once = set("a", "")] = growing;
    const relabel = rulesOf(once, once, ruleOf({ action: "labeldrop", regex: "a" }));
    expect(outcomeOf(labels, { routes: [route({ relabel })], limits })).toEqual([UP]);
  });
});

describe("checks of what the rules of a route made", () => {
  it.each<Row>([
    {
      name: "no labels are left",
      labels: UP,
      routes: [route({ relabel: rulesOf(labelDrop(".*")) })],
      outcome: ["dropped: no_labels"],
    },
    {
      name: "no labels are left of a series that has the tenant's label alone",
      labels: [["tenant", "forged"]],
      routes: [route({ tenant: TENANT })],
      outcome: ["dropped: no_labels"],
    },
    {
      name: "the metric name is gone",
      labels: UP,
      routes: [route({ relabel: rulesOf(labelDrop("__name__")) })],
      outcome: ["dropped: no_metric_name"],
    },
    {
      name: "there are too many labels",
      labels: UP,
      limits: { maxLabels: 2 },
      routes: [route({ relabel: rulesOf(set("a", "1")) })],
      outcome: ["dropped: too_many_labels"],
    },
    {
      name: "there are more labels than with the tenant's",
      labels: UP,
      tenant: "acme",
      limits: { maxLabels: 2 },
      routes: [route({ tenant: TENANT }), route({ tenant: TENANT, relabel: rulesOf(set("a", "1")) })],
      outcome: [[...UP, ["tenant", "acme"]], "dropped: too_many_labels"],
    },
    {
      name: "a name is too long",
      labels: UP,
      limits: { maxLabelNameBytes: 8 },
      routes: [route({ relabel: rulesOf(set("n".repeat(9), "1")) })],
      outcome: ["dropped: label_name_too_long"],
    },
    {
      name: "a value is too long, counted in bytes",
      labels: UP,
      limits: { maxLabelValueBytes: 8 },
      routes: [
        route({ relabel: rulesOf(set("job", "éééé")) }),
        route({ relabel: rulesOf(set("job", "ééééé")) }),
      ],
      outcome: [
        [
          ["__name__", "up"],
          ["job", "éééé"],
        ],
        "dropped: label_value_too_long",
      ],
    },
    {
      name: "the tenant is too long for a value",
      labels: UP,
      tenant: "t".repeat(9),
      limits: { maxLabelValueBytes: 8 },
      routes: [route({ tenant: TENANT }), PLAIN],
      outcome: ["dropped: label_value_too_long", UP],
    },
    {
      name: "labelmap has made an empty name",
      labels: UP,
      routes: [route({ relabel: rulesOf(labelMap("job(.*)", "$1")) })],
      outcome: ["dropped: empty_label_name"],
    },
  ])("drop it in that route when $name", expectOutcome);

  it("let a series without a metric name go on if it came without one", () => {
    const labels: Pairs = [["job", "node"]];
    const routes = [route({ relabel: rulesOf(set("a", "1")) })];
    expect(outcomeOf(labels, { routes })).toEqual([[["a", "1"], ...labels]]);
  });

  it("let labels pass as they came that no rule changes, whatever they are", () => {
    expect(outcomeOf([], { routes: [route({ relabel: rulesOf(drop("job", "x")) })] })).toEqual([[]]);
    expect(outcomeOf([["a", ""]], { routes: [PLAIN] })).toEqual([[["a", ""]]]);
  });

  it("come after all rules of the route, which may mend what one of them breaks", () => {
    const relabel = rulesOf(
      copy("__name__", "kept"),
      labelDrop("__name__"),
      copy("kept", "__name__"),
      labelDrop("kept"),
    );
    expect(outcomeOf(UP, { routes: [route({ relabel })] })).toEqual([UP]);
  });

  it("come before keys and the rules of upstreams: what they drop has no place", () => {
    const mended = {
      relabel: rulesOf(labelDrop("__name__")),
      upstreams: written(rulesOf(set("__name__", "up"))),
    };
    expect(decisionOf(UP, { routes: [mended] })).toEqual({
      kind: "offered",
      routes: [{ kind: "dropped", reason: "no_metric_name" }],
    });
  });
});

/** The example route's task for these labels. */
function taskOf(labels: Pairs): string {
  return String(compilePlacer(exampleRoute())(spansOf(labels)).task);
}

describe("keys", () => {
  it("are of the labels that the route's rules have made", () => {
    const rewritten: Pairs = [
      ["__name__", "up"],
      ["instance", "i"],
      ["job", "other"],
    ];
    const relabel = rulesOf(set("job", "other"), set("instance", "i"));
    const placed = placedOf(UP, { routes: [{ relabel }] });
    expect(placed).toEqual(compilePlacer(exampleRoute())(spansOf(rewritten)));
    expect(placed).not.toEqual(placedOf(UP, { routes: [{}] }));
  });

  it("are of the labels that global rules have made", () => {
    const globalRules = [set("job", "other")];
    const relabelled: Pairs = [
      ["__name__", "up"],
      ["job", "other"],
    ];
    expect(placedOf(UP, { globalRules, routes: [{}] })).toEqual(placedOf(relabelled, { routes: [{}] }));
  });

  it("are missing when rules have taken the labels away, and not when they have made them", () => {
    const byZone = {
      ...PLAIN,
      placement: {
        key: { kind: "by", names: ["zone"] },
        algorithm: "jump",
        missingKey: "one_place",
        replicas: 1,
      },
    } as const;
    const labels: Pairs = [...UP, ["zone", "z"]];
    expect(placedOf(labels, { routes: [byZone] })?.missingKeyLabels).toBe(false);
    expect(placedOf(labels, { routes: [{ ...byZone, relabel: rulesOf(labelDrop("zone")) }] })).toMatchObject({
      missingKeyLabels: true,
    });
    expect(placedOf(UP, { routes: [{ ...byZone, relabel: rulesOf(set("zone", "z")) }] })).toEqual(
      placedOf(labels, { routes: [byZone] }),
    );
  });

  it("come before the task label: one that a rule or a sender set is no part of them, and is overwritten", () => {
    const relabel = rulesOf(set(TASK_LABEL, "forged"));
    const expected = [[...UP, [TASK_LABEL, taskOf(UP)]]];
    expect(outcomeOf(UP, { routes: [{ relabel }] })).toEqual(expected);
    expect(outcomeOf([...UP, [TASK_LABEL, "999"]], { routes: [{}] })).toEqual(expected);
    expect(placedOf(UP, { routes: [{ relabel }] })).toEqual(placedOf(UP, { routes: [{}] }));
  });
});

describe("the task label", () => {
  it("comes after the rules of the route, which never see it", () => {
    const relabel = rulesOf(copy(TASK_LABEL, "seen"), keep(TASK_LABEL, ""));
    expect(outcomeOf(UP, { routes: [{ relabel }] })).toEqual([[...UP, [TASK_LABEL, taskOf(UP)]]]);
  });

  it("comes before the rules of the upstream, which may use it", () => {
    const upstreams = written(rulesOf(keep(TASK_LABEL, "[0-9]+"), copy(TASK_LABEL, "task")));
    expect(outcomeOf(UP, { routes: [{ upstreams }] })).toEqual([
      [...UP, [TASK_LABEL, taskOf(UP)], ["task", taskOf(UP)]],
    ]);
  });

  it("is in its sorted place among labels that rules have made", () => {
    const relabel = rulesOf(set("zone", "z"), set("a", "1"));
    const made: Pairs = [
      ["__name__", "up"],
      ["a", "1"],
      ["job", "node"],
      ["zone", "z"],
    ];
    expect(outcomeOf(UP, { routes: [{ relabel }] })).toEqual([
      made.toSpliced(3, 0, [TASK_LABEL, taskOf(made)]),
    ]);
  });

  it("is none of the labels that are counted, neither after the route's rules nor after the upstream's", () => {
    const labels: Pairs = [...UP, ["zone", "z"]];
    const limits = { maxLabels: 3 };
    const relabel = rulesOf(set("job", "other"));
    const rewritten: Pairs = [
      ["__name__", "up"],
      ["job", "other"],
      ["zone", "z"],
    ];
    const upstreams = written(rulesOf(set("zone", "y")));
    const task = taskOf(rewritten);
    expect(outcomeOf(labels, { limits, routes: [{ relabel, upstreams }] })).toEqual([
      [
        ["__name__", "up"],
        ["job", "other"],
        [TASK_LABEL, task],
        ["zone", "y"],
      ],
    ]);
    const tooMany = written(rulesOf(set("a", "1")));
    expect(outcomeOf(labels, { limits, routes: [{ upstreams: tooMany }] })).toEqual([
      "dropped: too_many_labels",
    ]);
  });
});

describe("rules of the upstream", () => {
  it("are those of the slot that the series is placed on", () => {
    const upstreams = UPSTREAMS.map((name) => ({ name, writeRelabel: rulesOf(set("upstream", name)) }));
    for (let number = 0; number < 20; number++) {
      const labels: Pairs = [...UP, ["number", String(number)]];
      const slot = placedOf(labels, { routes: [{ ...PLAIN, upstreams }] })?.places[0]?.slots[0] ?? -1;
      expect(outcomeOf(labels, { routes: [{ ...PLAIN, upstreams }] })).toEqual([
        [...labels, ["upstream", UPSTREAMS[slot]]],
      ]);
    }
  });

  it.each([
    { name: "removing what is keyed", rules: [labelDrop("job")] },
    { name: "changing what is keyed", rules: [set("job", "x"), set("__name__", "y")] },
    { name: "removing the task label", rules: [labelDrop(TASK_LABEL)] },
    { name: "changing the task label", rules: [set(TASK_LABEL, "0")] },
    { name: "dropping the series", rules: [drop("job", "node")] },
    { name: "removing all labels", rules: [labelDrop(".*")] },
  ])("cannot change where a series goes: $name", ({ rules }) => {
    for (let number = 0; number < 20; number++) {
      const labels: Pairs = [...UP, ["number", String(number)]];
      const placed = placedOf(labels, { routes: [{ upstreams: written(rulesOf(...rules)) }] });
      expect(placed).toEqual(placedOf(labels, { routes: [{}] }));
      expect(placed).not.toBeNull();
    }
  });

  it("may take the task label away", () => {
    const upstreams = written(rulesOf(labelDrop(TASK_LABEL)));
    expect(outcomeOf(UP, { routes: [{ upstreams }] })).toEqual([UP]);
  });

  it.each<Row>([
    {
      name: "by a rule",
      labels: UP,
      routes: [{ upstreams: written(rulesOf(drop("job", "node"))) }],
      outcome: ["dropped: write_relabel_configs"],
    },
    {
      name: "for want of labels",
      labels: UP,
      routes: [{ upstreams: written(rulesOf(labelDrop(".*"))) }],
      outcome: ["dropped: no_labels"],
    },
    {
      name: "for want of a metric name",
      labels: UP,
      routes: [{ upstreams: written(rulesOf(labelKeep(TASK_LABEL))) }],
      outcome: ["dropped: no_metric_name"],
    },
    {
      name: "for an empty name",
      labels: UP,
      routes: [{ upstreams: written(rulesOf(labelMap("job(.*)", "$1"))) }],
      outcome: ["dropped: empty_label_name"],
    },
    {
      name: "for a value that is too long",
      labels: UP,
      limits: { maxLabelValueBytes: 8 },
      routes: [{ upstreams: written(rulesOf(set("job", "j".repeat(9)))) }],
      outcome: ["dropped: label_value_too_long"],
    },
  ])("may drop a series: $name", expectOutcome);

  it("leave the labels alone that they do not change", () => {
    const labels: Pairs = [["zone", "z"], ...UP];
    const upstreams = written(rulesOf(drop("job", "other"), set("job", "node")));
    expect(outcomeOf(labels, { routes: [route({ upstreams })] })).toEqual([labels]);
  });
});

describe("the order of labels", () => {
  const unsorted: Pairs = [
    ["zone", "z"],
    ["__name__", "up"],
    ["job", "node"],
  ];
  const sorted: Pairs = [
    ["__name__", "up"],
    ["job", "node"],
    ["zone", "z"],
  ];
  /** Rules that look and change nothing. */
  const idle = [drop("job", "other"), keep("zone", "z"), set("job", "node"), labelDrop("nothing")];
  const task: readonly [string, string] = [TASK_LABEL, taskOf(unsorted)];

  it.each<Row>([
    { name: "without rules", labels: unsorted, routes: [PLAIN], outcome: [unsorted] },
    {
      name: "with rules everywhere that change nothing",
      labels: unsorted,
      globalRules: idle,
      routes: [route({ relabel: rulesOf(...idle), upstreams: written(rulesOf(...idle)) })],
      outcome: [unsorted],
    },
    {
      name: "with the task label before the first greater name, and rules that change nothing",
      labels: unsorted,
      globalRules: idle,
      routes: [{ relabel: rulesOf(...idle), upstreams: written(rulesOf(...idle)) }],
      outcome: [[task, ...unsorted]],
    },
  ])("is the sender's where no rule changes labels: $name", expectOutcome);

  it.each<Row>([
    {
      name: "a global one, for all routes",
      labels: unsorted,
      globalRules: [set("job", "x")],
      routes: [PLAIN, PLAIN],
      outcome: [withJob("x"), withJob("x")],
    },
    {
      name: "one of a route, for that route alone",
      labels: unsorted,
      routes: [route({ relabel: rulesOf(set("job", "x")) }), PLAIN],
      outcome: [withJob("x"), unsorted],
    },
    {
      name: "one of an upstream, with the task label",
      labels: unsorted,
      routes: [{ upstreams: written(rulesOf(set("job", "x"))) }, PLAIN],
      outcome: [withJob("x").toSpliced(2, 0, task), unsorted],
    },
  ])("is that of their names where a rule changes labels: $name", expectOutcome);

  function withJob(value: string): Pairs {
    return sorted.map(([name, was]) => [name, name === "job" ? value : was]);
  }
});

describe("several routes", () => {
  it("each get a series that they keep, and never see each other's labels", () => {
    const seen = (name: string): RouteChanges =>
      route({ relabel: rulesOf(set(name, "1"), copy("first", "seen_first"), copy("second", "seen_second")) });
    expect(outcomeOf(UP, { routes: [seen("first"), seen("second"), PLAIN] })).toEqual([
      [
        ["__name__", "up"],
        ["first", "1"],
        ["job", "node"],
        ["seen_first", "1"],
      ],
      [
        ["__name__", "up"],
        ["job", "node"],
        ["second", "1"],
        ["seen_second", "1"],
      ],
      UP,
    ]);
  });

  it("do not see the tenant's label of another, nor its task label", () => {
    const relabel = rulesOf(copy("tenant", "seen"), copy(TASK_LABEL, "seen_task"));
    const setting = { tenant: "acme", routes: [{ tenant: TENANT }, route({ relabel })] };
    expect(outcomeOf(UP, setting)).toEqual([
      [
        ["__name__", "up"],
        ["job", "node"],
        [TASK_LABEL, taskOf([...UP, ["tenant", "acme"]])],
        ["tenant", "acme"],
      ],
      UP,
    ]);
  });

  it("may all not keep it", () => {
    const routes = [1, 2].map(() => route({ relabel: rulesOf(drop("job", "node")) }));
    expect(outcomeOf(UP, { routes })).toEqual(["not_selected", "not_selected"]);
  });

  it.each<Row>([
    {
      name: "that keeps it",
      labels: UP,
      routes: [PLAIN, route({ final: true }), PLAIN, route({ final: true })],
      outcome: [UP, UP, "not_selected", "not_selected"],
    },
    {
      name: "that keeps it and then has to drop it",
      labels: UP,
      routes: [route({ final: true, relabel: rulesOf(labelDrop("__name__")) }), PLAIN],
      outcome: ["dropped: no_metric_name", "not_selected"],
    },
    {
      name: "whose upstream's rules drop it",
      labels: UP,
      routes: [route({ final: true, upstreams: written(rulesOf(drop("job", "node"))) }), PLAIN],
      outcome: ["dropped: write_relabel_configs", "not_selected"],
    },
  ])("end with a final one $name", expectOutcome);

  it("go on behind a final one that does not keep it", () => {
    const final = route({ final: true, relabel: rulesOf(keep("job", "other")) });
    expect(outcomeOf(UP, { routes: [final, PLAIN] })).toEqual(["not_selected", UP]);
  });

  it("read rules in their own dialects", () => {
    // vmagent takes labels with two underscores away behind its rules.
    const { rules } = rulesOf(copy("job", "__hidden"), set("a", "1"));
    const routes = (["prometheus", "victoriametrics"] as const).map((dialect) =>
      route({ relabel: { dialect, rules } }),
    );
    const visible: Pairs = [
      ["__name__", "up"],
      ["a", "1"],
      ["job", "node"],
    ];
    expect(outcomeOf(UP, { routes })).toEqual([[["__hidden", "node"], ...visible], visible]);
  });
});

describe("copies for several upstreams", () => {
  const placement = (replicas: number): RouteOptions["placement"] => {
    return { key: { kind: "all" }, algorithm: "jump", missingKey: "one_place", replicas };
  };
  const all = placement(UPSTREAMS.length);
  const at = (slot: number, list: RelabelRuleList): ExampleSlot[] =>
    slotsOf(...UPSTREAMS).map((each, number) => (number === slot ? { ...each, writeRelabel: list } : each));

  /** What becomes of the copy for each slot. */
  function bySlot(labels: Pairs, setting: Setting): Record<number, CopyOutcome | undefined> {
    const [outcome] = outcomeOf(labels, setting);
    if (outcome === undefined || typeof outcome === "string" || !("copies" in outcome)) return {};
    const slots = placedOf(labels, setting)?.places[0]?.slots ?? [];
    expect(outcome.copies).toHaveLength(slots.length);
    return Object.fromEntries(slots.map((slot, replica) => [slot, outcome.copies[replica]]));
  }

  it("are as many as there are replicas, at distinct upstreams, with the same labels", () => {
    const routes = [{ placement: placement(2) }];
    const outcome = [...UP, [TASK_LABEL, taskOf(UP)]];
    expect(outcomeOf(UP, { routes })).toEqual([{ copies: [outcome, outcome] }]);
    expect(new Set(placedOf(UP, { routes })?.places[0]?.slots).size).toBe(2);
  });

  it.each([0, 1, 2])("are dropped by the rules of their own upstream alone: slot %i", (slot) => {
    const routes = [route({ placement: all, upstreams: at(slot, rulesOf(drop("job", "node"))) })];
    expect(bySlot(UP, { routes })).toEqual({ 0: UP, 1: UP, 2: UP, [slot]: "dropped: write_relabel_configs" });
  });

  it.each([0, 1, 2])("are rewritten by the rules of their own upstream alone: slot %i", (slot) => {
    const relabel = rulesOf(set("of", "the route"));
    const routes = [{ relabel, placement: all, upstreams: at(slot, rulesOf(set("of", "an upstream"))) }];
    const task = taskOf([...UP, ["of", "the route"]]);
    const labels = (of: string): Pairs => [...UP, ["of", of], [TASK_LABEL, task]];
    const others = labels("the route");
    expect(bySlot(UP, { routes })).toEqual({
      0: others,
      1: others,
      2: others,
      [slot]: labels("an upstream"),
    });
  });

  it("are checked by themselves behind those rules", () => {
    const routes = [route({ placement: all, upstreams: at(1, rulesOf(labelDrop("__name__"))) })];
    expect(bySlot(UP, { routes })).toEqual({ 0: UP, 1: "dropped: no_metric_name", 2: UP });
  });

  it("are kept from later routes by a final one even if all of them are dropped", () => {
    const upstreams = written(rulesOf(drop("job", "node")));
    const gone = "dropped: write_relabel_configs";
    expect(outcomeOf(UP, { routes: [route({ placement: all, upstreams, final: true }), PLAIN] })).toEqual([
      { copies: [gone, gone, gone] },
      "not_selected",
    ]);
  });

  it("are told one after another, in the order of the replicas", () => {
    const routes = [route({ placement: all, upstreams: written(rulesOf(set("a", "1"))) })];
    expect(logOf(UP, { routes })).toEqual(
      placedOf(UP, { routes })?.places[0]?.slots.map(
        (slot) => `route 0 upstream ${slot} rule 0: __name__=up,a=1,job=node`,
      ),
    );
  });
});

/** Notes all that a decision tells, in the order in which it does. */
class Notes implements DecisionWitness {
  readonly log: string[] = [];
  readonly globalRules = this.#tell("global");
  readonly routes: DecisionWitness["routes"];

  constructor(routes: number) {
    this.routes = Array.from({ length: routes }, (_, index) => ({
      rules: this.#tell(`route ${index}`),
      tenantLabel: (labels) => {
        this.#note(`route ${index} tenant`, labels);
      },
      upstreamRules: (slot) => this.#tell(`route ${index} upstream ${slot}`),
    }));
  }

  #tell(rules: string): TellRule {
    return (rule, labels) => {
      this.#note(`${rules} rule ${rule}`, labels);
    };
  }

  #note(what: string, labels: Pairs | null): void {
    const text = labels === null ? "dropped" : labels.map((label) => label.join("=")).join(",");
    this.log.push(`${what}: ${text}`);
  }
}

function logOf(labels: Pairs, setting: Setting): string[] {
  const notes = new Notes(setting.routes?.length ?? 1);
  decisionOf(labels, setting, notes);
  return notes.log;
}

describe("a witness", () => {
  const one = { tasks: { ...EXAMPLE_TASKS, count: 1 } };

  it("is told of every rule in order, those that change nothing and the one that drops included", () => {
    const globalRules = [drop("job", "other"), set("g", "1")];
    const relabel = rulesOf(set("r", "1"), drop("r", "2"));
    const upstreams = written(rulesOf(labelDrop("g"), drop("job", "node"), set("never", "1")));
    const routes = [
      { ...one, tenant: TENANT, relabel, upstreams },
      route({ relabel: rulesOf(keep("r", "1"), set("never", "1")) }),
    ];
    const placed = placedOf(UP, { globalRules, routes, tenant: "acme" });
    expect(logOf(UP, { globalRules, routes, tenant: "acme" })).toEqual([
      "global rule 0: __name__=up,job=node",
      "global rule 1: __name__=up,g=1,job=node",
      "route 0 tenant: __name__=up,g=1,job=node,tenant=acme",
      "route 0 rule 0: __name__=up,g=1,job=node,r=1,tenant=acme",
      "route 0 rule 1: __name__=up,g=1,job=node,r=1,tenant=acme",
      `route 0 upstream ${placed?.places[0]?.slots[0]} rule 0: __name__=up,job=node,r=1,stream_task_id=0,tenant=acme`,
      `route 0 upstream ${placed?.places[0]?.slots[0]} rule 1: dropped`,
      "route 1 rule 0: dropped",
    ]);
  });

  it("is told of no route's rules when a global one drops the series", () => {
    const globalRules = [set("a", "1"), drop("a", "1"), set("never", "1")];
    const routes = [route({ tenant: TENANT, relabel: rulesOf(set("never", "1")) })];
    expect(logOf(UP, { globalRules, routes })).toEqual([
      "global rule 0: __name__=up,a=1,job=node",
      "global rule 1: dropped",
    ]);
  });

  it("is told nothing of a route behind a final one, nor of a series that is refused", () => {
    const globalRules = [set("a", "1")];
    const routes = [route({ final: true }), route({ relabel: rulesOf(set("never", "1")) })];
    expect(logOf(UP, { globalRules, routes })).toEqual(["global rule 0: __name__=up,a=1,job=node"]);
    expect(logOf([["", "x"]], { globalRules, routes })).toEqual([]);
  });

  it("is told the labels with the tenant's in the order in which they go on", () => {
    const labels: Pairs = [["tenant", "acme"], ...UP];
    const routes = [route({ tenant: TENANT })];
    expect(logOf(labels, { routes, tenant: "acme" })).toEqual([
      "route 0 tenant: tenant=acme,__name__=up,job=node",
    ]);
    expect(logOf(labels, { routes, tenant: "other" })).toEqual([
      "route 0 tenant: __name__=up,job=node,tenant=other",
    ]);
    expect(logOf(labels, { routes })).toEqual(["route 0 tenant: __name__=up,job=node"]);
  });
});

describe("a decision", () => {
  it("does not change what the next series is decided by", () => {
    const relabel = rulesOf(copy("job", "copied"));
    const setting: Setting = { globalRules: [copy("zone", "g")], routes: [{ relabel, tenant: TENANT }] };
    const first = outcomeOf([...UP, ["zone", "z"]], setting);
    outcomeOf([["job", "else"]], { ...setting, tenant: "acme" });
    expect(outcomeOf([...UP, ["zone", "z"]], setting)).toEqual(first);
  });
});
