/** What a running gateway lets a reload do, and what it says of it. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { PlanReport } from "../../src/plan/report.ts";
import { label, oneSample, requestBody } from "../reference/build.ts";
import type { ReferenceSeries } from "../reference/writeRequest.ts";
import { GatewayRig } from "./gatewayRig.ts";

/** Enough that a reload counts them, not made-up keys. */
const SERIES = 1_100;
const BODY = requestBody(
  ...Array.from({ length: SERIES }, (_, number) => oneSample("up", label("instance", `host-${number}`))),
);
const HOUR_MS = 3_600_000;

let rig: GatewayRig;

beforeEach(async () => {
  rig = await GatewayRig.start(
    4,
    () => "routes: [{name: other, upstreams: [{name: a, url: http://127.0.0.1:9/w}]}]",
    {
      adminListen: "127.0.0.1:0",
    },
  );
});
afterEach(async () => {
  await rig.stop();
});

function live(slot: number, options = ""): string {
  return `{name: vmagent-${slot}, url: "${rig.urls[slot] ?? ""}"${options}}`;
}

function aggregation(list: readonly string[], { ratio = 0.5, options = "" } = {}): string {
  return `
reload: {max_moved_ratio: ${ratio}}
routes:
  - name: aggregation
    tasks: {count: 128}
    ${options}
    upstreams: [${list.join(", ")}]
`;
}

/** Has it run with a list, whatever that moves, and send series through it. */
async function runWith(configText: string): Promise<void> {
  expect(await rig.reload(configText, "?force=true")).toMatchObject({ status: 200 });
  await send();
}

async function send(): Promise<void> {
  expect(await rig.send(BODY)).toMatchObject({ status: 204 });
}

async function planned(to: string): Promise<PlanReport> {
  const response = await rig.admin("/api/v1/plan", {
    method: "POST",
    body: JSON.stringify({ to: rig.head + to }),
  });
  return ((await response.json()) as { data: PlanReport }).data;
}

async function hash(): Promise<string | undefined> {
  const page = await (await rig.admin("/metrics")).text();
  return /config_info\{hash="(\w+)"\} 1/.exec(page)?.[1];
}

function nameOf({ labels }: ReferenceSeries): string {
  return JSON.stringify(labels);
}

/** As a person reads it. */
function percentOf(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}

describe("a list that a removal in the middle renumbers", () => {
  beforeEach(() => runWith(aggregation([live(0), live(1), live(2), live(3)])));

  it("is refused, with how much moves and how to write the list, and changes nothing", async () => {
    const [before, list] = [await hash(), aggregation([live(0), live(2), live(3)])];
    const { share } = (await planned(list)).changed;
    expect(share).toBeGreaterThan(0.5);
    const { status, text } = await rig.reload(list);
    expect(status).toBe(409);
    const lines = text.split("\n");
    expect(lines.slice(0, 3)).toEqual([
      "the configuration is refused and changes nothing",
      `it moves ${percentOf(share)} of route aggregation; want at most 50 % of a route (reload.max_moved_ratio)`,
      `moves ${percentOf(share)} of the copies of route aggregation (exact, over all ${SERIES} series)`,
    ]);
    expect(lines).toContain(
      "  to move less, write behind vmagent-0 in the list, so that those behind it keep their numbers: - {name: vmagent-1, removed: true}",
    );
    expect(lines.at(-2)).toBe(
      "to have it all the same: POST /-/reload?force=true, or a higher reload.max_moved_ratio in the file",
    );
    expect(await hash()).toBe(before);
    expect(await rig.metric("reloads_total", 'result="refused"')).toBe(1);
    expect(await rig.metric("config_last_reload_successful")).toBe(0);
  });

  it("is in force with the tombstone that the refusal gives, which moves what the upstream had", async () => {
    const refusal = await rig.reload(aggregation([live(0), live(2), live(3)]));
    const tombstone = /- (\{name: .*\})/.exec(refusal.text)?.[1] ?? "";
    const had = (await planned(aggregation([live(0), tombstone, live(2), live(3)]))).routes[0]?.upstreams[1]
      ?.before;
    const { status, text } = await rig.reload(aggregation([live(0), tombstone, live(2), live(3)]));
    expect({ status, text }).toMatchObject({ status: 200 });
    expect(text).toMatch(/^the configuration is in force\nmoves \d\d\.\d %/);
    expect(await rig.metric("reload_moved_ratio", 'route="aggregation"')).toBe(had?.share);
    expect(await rig.metric("config_last_reload_successful")).toBe(1);
  });

  it("is in force when it is forced, and moves what was said", async () => {
    const list = aggregation([live(0), live(2), live(3)]);
    const { share } = (await planned(list)).changed;
    const { status, text } = await rig.reload(list, "?force=true");
    expect(status).toBe(200);
    expect(text).toContain(`moves ${percentOf(share)} of the copies of route aggregation`);
    expect(await rig.metric("reload_moved_ratio", 'route="aggregation"')).toBe(share);
    const arrived = rig.receivers.map(({ series }) => series.map(nameOf));
    await send();
    const stayed = rig.receivers.flatMap(({ series }, slot) => {
      const before = arrived[slot] ?? [];
      return series.slice(before.length).filter((each) => before.includes(nameOf(each)));
    });
    expect(stayed).toHaveLength(SERIES - Math.round(share * SERIES));
    expect(rig.receiver(1).series).toHaveLength(arrived[1]?.length ?? NaN);
  });
});

describe("a new upstream", () => {
  beforeEach(() => runWith(aggregation([live(0), live(1), live(2)])));

  it("is refused in the middle of the list, and in force at its end, as the refusal says", async () => {
    const { status, text } = await rig.reload(aggregation([live(3), live(0), live(1), live(2)]));
    expect(status).toBe(409);
    expect(text).toContain("to move less, write at the end of the list: vmagent-3");
    expect(await rig.reload(aggregation([live(0), live(1), live(2), live(3)]))).toMatchObject({
      status: 200,
    });
  });

  it("is refused where the new file allows less than it moves, whatever the old one allows", async () => {
    const grown = [live(0), live(1), live(2), live(3)];
    const { status, text } = await rig.reload(aggregation(grown, { ratio: 0.1 }));
    expect(status).toBe(409);
    expect(text).toContain("want at most 10 % of a route (reload.max_moved_ratio)");
    expect(await rig.reload(aggregation(grown))).toMatchObject({ status: 200 });
  });

  it("is in force in the middle where the new file allows it, though the old one does not", async () => {
    const list = [live(3), live(0), live(1), live(2)];
    expect(await rig.reload(aggregation(list, { ratio: 1 }))).toMatchObject({ status: 200 });
  });
});

describe("a file of the old gateway whose list is renumbered", () => {
  const old = (slots: readonly number[]): string => `
router_rules:
  - router_name: vmagent
    hash_labels: {mode: 128, labels: [stream_task_id]}
    upstreams: {upstream_type: remotewriter, upstream_urls: [${slots.map((slot) => rig.urls[slot]).join(", ")}]}
`;

  it("is refused with the word that a tombstone takes a native file", async () => {
    expect(await rig.reload(old([0, 1, 2, 3]), "?force=true", "")).toMatchObject({ status: 200 });

    await send();

    const { status, text } = await rig.reload(old([0, 2, 3]), "", "");
    expect(status).toBe(409);
    expect(text).toMatch(/removed: true\}\n {2}this takes a native file: .*see the command convert\n/);
    // Such a file cannot say that the gateway is to end without a delay.
    await rig.reload(aggregation([live(0)]), "?force=true");
  });
});

describe("periods", () => {
  const at = (ms: number): string => new Date(Date.now() + ms).toISOString();
  const periods = (...all: readonly (readonly [from: string | null, slots: readonly number[]])[]): string => `
routes:
  - name: aggregation
    tasks: {count: 128}
    retire_after: 1h
    topology:
${all
  .map(
    ([from, slots]) =>
      `      - {${from === null ? "" : `from: ${from}, `}upstreams: [${slots.map((slot) => live(slot)).join(", ")}]}\n`,
  )
  .join("")}`;

  it("that are over for longer than late items are taken may be deleted", async () => {
    const [first, second] = [at(-30 * HOUR_MS), at(-20 * HOUR_MS)];
    await runWith(periods([null, [0]], [first, [1]], [second, [0, 1, 2]]));
    expect(await rig.reload(periods([null, [1]], [second, [0, 1, 2]]))).toMatchObject({ status: 200 });
    expect(await rig.reload(periods([null, [0, 1, 2]]))).toMatchObject({ status: 200 });
    expect(await rig.metric("reload_moved_ratio", 'route="aggregation"')).toBe(0);
  });

  it("that late items still come for are guarded", async () => {
    const lately = at(-HOUR_MS / 2);
    await runWith(periods([null, [0]], [lately, [0, 1, 2]]));
    const { status, text } = await rig.reload(periods([null, [0, 1, 2]]));
    expect({ status, text }).toMatchObject({ status: 409 });
    expect(text).toMatch(/^it moves 6\d\.\d % of route aggregation/m);
    expect(text).toMatch(
      /^moves nothing in the newest period \(.*\); of route aggregation 6\d\.\d % of items before /m,
    );
  });

  it("that are new and begin in the past are in force, with a warning", async () => {
    await runWith(periods([null, [0, 1]], [at(HOUR_MS), [0, 1, 2]]));
    const past = at(-60_000);
    const { status, text } = await rig.reload(periods([null, [0, 1]], [past, [0, 1, 2]]));
    expect(status).toBe(200);
    expect(text).toContain(
      `warning: route aggregation: the period from ${past} is new and begins in the past`,
    );
    expect(text).toMatch(
      /^route aggregation: nothing leaves its upstream in the newest period; 3\d\.\d % of items from /m,
    );
  });
});

describe("a change that decides nothing of where series go", () => {
  it("of credentials keeps all decisions", async () => {
    const list = (password: string): string =>
      aggregation([live(0, `, basic_auth: {username: u, password: "${password}"}`), live(1)]);
    await runWith(list("old"));
    const [hits, misses] = [
      await rig.metric("decision_table_hits_total"),
      await rig.metric("decision_table_misses_total"),
    ];
    expect(await rig.reload(list("new"))).toEqual({
      status: 200,
      text: "the configuration is in force\nno series goes elsewhere\n",
    });
    await send();
    expect(await rig.metric("decision_table_hits_total")).toBe(hits + SERIES);
    expect(await rig.metric("decision_table_misses_total")).toBe(misses);
    expect(rig.receiver(0).headers.at(-1)?.authorization).toBe(
      `Basic ${Buffer.from("u:new").toString("base64")}`,
    );
  });

  it("of rules has them all made anew, though nothing moves", async () => {
    const list = [live(0), live(1)];
    await runWith(aggregation(list));
    const misses = await rig.metric("decision_table_misses_total");
    const rules = "relabel_configs: [{source_labels: [instance], regex: none, action: drop}]";
    expect(await rig.reload(aggregation(list, { options: rules }))).toMatchObject({ status: 200 });
    await send();
    expect(await rig.metric("decision_table_misses_total")).toBe(misses + SERIES);
  });
});

describe("an option that a running gateway cannot change", () => {
  it.each([
    { name: "listen", head: () => rig.head.replace("listen: 127.0.0.1:0", "listen: 127.0.0.1:1"), text: "" },
    {
      name: "admin_listen",
      head: () => rig.head.replace("admin_listen: 127.0.0.1:0", "admin_listen: off"),
      text: "",
    },
    { name: "spool", head: () => rig.head.replace("/spool", "/elsewhere"), text: "" },
    { name: "max_connection_age", head: () => rig.head, text: "max_connection_age: 7m" },
  ])("is told to take effect at the next start: $name", async ({ name, head, text }) => {
    const list = aggregation([live(0), live(1)]);
    await runWith(list);
    const restart = expect.stringContaining(
      `${name} is another and takes effect at the next start\n`,
    ) as string;
    expect(await rig.reload(text + list, "", head())).toEqual({ status: 200, text: restart });
    await send();
    // It is told again as long as it is so, and not when it is as at the start.
    expect(await rig.reload(text + aggregation([live(0), live(1)], { ratio: 0.6 }), "", head())).toEqual({
      status: 200,
      text: restart,
    });
    const back = await rig.reload(list);
    expect(back).toEqual({ status: 200, text: "the configuration is in force\nno series goes elsewhere\n" });
  });
});
