import { describe, expect, it } from "vitest";
import { areOne, areTwo, vmagentAt } from "../../src/lint/vmagents.ts";

const WRITE = "http://vm:8429/api/v1/write";

interface Row {
  readonly name: string;
  readonly urls: readonly [string, string];
  /** `perhaps`: not known. */
  readonly are: "one" | "two" | "perhaps";
}

const ROWS: readonly Row[] = [
  { name: "one url", urls: [WRITE, WRITE], are: "one" },
  { name: "two paths of a vmagent", urls: [WRITE, "http://vm:8429/api/v1/push"], are: "one" },
  {
    name: "two paths of a vmagent with a prefix",
    urls: ["http://vm:8429/prometheus/api/v1/write", "http://vm:8429/prometheus/api/v1/push"],
    are: "one",
  },
  { name: "several slashes", urls: [WRITE, "http://vm:8429//api/v1//write"], are: "one" },
  { name: "a host in upper case", urls: [WRITE, "http://VM:8429/api/v1/write"], are: "one" },
  { name: "a host with the dot of the root", urls: [WRITE, "http://vm.:8429/api/v1/write"], are: "one" },
  { name: "the port of http", urls: ["http://vm/api/v1/write", "http://vm:80/api/v1/push"], are: "one" },
  { name: "the port of https", urls: ["https://vm/api/v1/write", "http://vm:443/api/v1/write"], are: "one" },
  { name: "one path of a proxy", urls: ["http://vm/insert/0", "http://vm/insert/0"], are: "one" },
  { name: "two paths of a proxy", urls: ["http://vm/insert/0", "http://vm/insert/1"], are: "perhaps" },
  { name: "a path of a vmagent and another", urls: [WRITE, "http://vm:8429/write"], are: "perhaps" },
  { name: "a slash at the end", urls: [WRITE, `${WRITE}/`], are: "perhaps" },
  {
    name: "one path of a proxy with two queries",
    urls: ["http://vm/insert?to=a", "http://vm/insert?to=b"],
    are: "perhaps",
  },
  { name: "two ports", urls: [WRITE, "http://vm:8430/api/v1/write"], are: "two" },
  { name: "http and https", urls: ["http://vm/api/v1/write", "https://vm/api/v1/write"], are: "two" },
  { name: "two hosts", urls: [WRITE, "http://vm-1:8429/api/v1/write"], are: "two" },
];

describe("the vmagents of two urls", () => {
  it.each(ROWS)("are $are: $name", ({ urls, are }) => {
    const [one, other] = urls.map((url) =>
      vmagentAt({ url: new URL(url), auth: { kind: "none" }, headers: {} }),
    );
    if (one === undefined || other === undefined) throw new Error("no urls");
    expect({ one: areOne([one, other]), two: areTwo(one, other) }).toEqual({
      one: are === "one",
      two: are === "two",
    });
  });
});

describe("the vmagents of one url", () => {
  it("are not known to be one where a proxy can tell the users apart", () => {
    const [one, other] = ["a", "b"].map((username) => {
      const auth = { kind: "basic", username, password: "secret" } as const;
      return vmagentAt({ url: new URL(WRITE), auth, headers: {} });
    });
    if (one === undefined || other === undefined) throw new Error("no urls");
    expect([areOne([one, other]), areTwo(one, other)]).toEqual([false, false]);
  });
});
