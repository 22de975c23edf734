import { describe, expect, it } from "vitest";
import type { TenantOptions } from "../../src/route/options.ts";
import {
  type HeaderLookup,
  type RequestTenants,
  SHARED_CONTEXT,
  Tenants,
  UNKEPT_CONTEXT,
} from "../../src/route/tenants.ts";
import { wireErrorOf } from "../wire/wireErrorOf.ts";

const HEADER = "x-scope-orgid";
const SILENT: TenantOptions = { header: HEADER, label: null, pass: false };
const LABEL: TenantOptions = { header: HEADER, label: "tenant", pass: false };
const PASS: TenantOptions = { header: HEADER, label: null, pass: true };
const MAX_BYTES = 16_384;
const OTHER: TenantOptions = { header: "x-team", label: "team", pass: true };

function headers(values: Readonly<Record<string, string>>): HeaderLookup {
  return (name) => (values[name] === undefined ? undefined : [values[name]]);
}

function tenant(value: string): HeaderLookup {
  return headers({ [HEADER]: value });
}

function textsOf({ byRoute }: RequestTenants): (string | null)[] {
  return byRoute.map((each) => each?.text ?? null);
}

describe("requests that no route tells apart", () => {
  it("are all of one tenant, whatever their headers say", () => {
    const tenants = new Tenants([SILENT, SILENT], MAX_BYTES);
    for (const value of ["a", "b", "", "\xff"]) {
      expect(tenants.of(tenant(value))).toEqual({ context: SHARED_CONTEXT, byRoute: [null, null] });
    }
  });

  it("are told apart by nothing but the headers that routes ask for", () => {
    const tenants = new Tenants([LABEL], MAX_BYTES);
    const first = tenants.of(headers({ [HEADER]: "a", "x-team": "one" }));
    expect(tenants.of(headers({ [HEADER]: "a", "x-team": "two" }))).toBe(first);
  });
});

describe("requests with tenants", () => {
  it.each([
    { name: "as a label", route: LABEL },
    { name: "in the header to upstreams", route: PASS },
  ])(
    "have the same context for the same tenant and another for another, in a route that has it $name",
    ({ route }) => {
      const tenants = new Tenants([route], MAX_BYTES);
      const [a, b, none] = [tenants.of(tenant("a")), tenants.of(tenant("b")), tenants.of(headers({}))];
      expect(new Set([a.context, b.context, none.context, SHARED_CONTEXT, UNKEPT_CONTEXT]).size).toBe(5);
      expect(tenants.of(tenant("a"))).toBe(a);
      expect(tenants.of(tenant("b"))).toBe(b);
      expect(tenants.of(headers({}))).toBe(none);
      expect([textsOf(a), textsOf(b), textsOf(none)]).toEqual([["a"], ["b"], [null]]);
    },
  );

  it("name none with an empty header as without it", () => {
    const tenants = new Tenants([LABEL], MAX_BYTES);
    expect(tenants.of(tenant(""))).toBe(tenants.of(headers({})));
  });

  it("name the tenant to the routes that ask, each by its own header", () => {
    const tenants = new Tenants([LABEL, SILENT, OTHER, PASS], MAX_BYTES);
    const both = tenants.of(headers({ [HEADER]: "a", "x-team": "one" }));
    expect(textsOf(both)).toEqual(["a", null, "one", "a"]);
    expect(textsOf(tenants.of(headers({ "x-team": "one" })))).toEqual([null, null, "one", null]);
  });

  it("are told apart by each of several headers, however the values divide", () => {
    const tenants = new Tenants([LABEL, OTHER], MAX_BYTES);
    const pairs = [
      ["a", "b"],
      ["b", "a"],
      ["ab", ""],
      ["", "ab"],
      ['a","b', ""],
      ["a,b", ""],
      ["a", ",b"],
    ] as const;
    const contexts = pairs.map(
      ([first, second]) => tenants.of(headers({ [HEADER]: first, "x-team": second })).context,
    );
    expect(new Set(contexts).size).toBe(pairs.length);
  });

  it("read the header's bytes as UTF-8 for labels, and keep them as they came for upstreams", () => {
    const header = Buffer.from("größe").toString("latin1");
    const [asLabel] = new Tenants([LABEL], MAX_BYTES).of(tenant(header)).byRoute;
    expect(asLabel).toEqual({ header, text: "größe" });
  });
});

describe("a tenant that cannot be one", () => {
  const header = "caf\xe9";

  it("is refused as a label where it is not UTF-8, each time it comes", () => {
    const tenants = new Tenants([PASS, LABEL], MAX_BYTES);
    for (let time = 0; time < 2; time++) {
      const error = wireErrorOf(() => tenants.of(tenant(header)));
      expect(error.code).toBe("WIRE_TENANT");
      expect(error.message).toBe(
        "the tenant in the header x-scope-orgid is not UTF-8; want text that a label can hold",
      );
    }
    expect(textsOf(tenants.of(tenant("a")))).toEqual(["a", "a"]);
  });

  it("is refused as a label where it is longer than values may be", () => {
    const tenants = new Tenants([LABEL], 4);
    expect(textsOf(tenants.of(tenant("abcd")))).toEqual(["abcd"]);
    const error = wireErrorOf(() => tenants.of(tenant("abcde")));
    expect(error.code).toBe("WIRE_TENANT");
    expect(error.message).toBe(
      "the tenant in the header x-scope-orgid has 5 bytes; want at most 4 (limits.max_label_value_bytes)",
    );
    expect(textsOf(new Tenants([PASS], 4).of(tenant("abcde")))).toEqual(["abcde"]);
  });

  it("is refused when it comes twice, as a proxy leaves it that adds its own", () => {
    const error = wireErrorOf(() => new Tenants([PASS], MAX_BYTES).of(() => ["a", "b"]));
    expect(error.code).toBe("WIRE_TENANT");
    expect(error.message).toBe("the header x-scope-orgid came 2 times; want one tenant");
  });

  it("is passed on where it is none", () => {
    expect(new Tenants([PASS], MAX_BYTES).of(tenant(header)).byRoute).toMatchObject([{ header }]);
  });
});

describe("a tenant that many routes ask for", () => {
  it("is remembered once", () => {
    const { byRoute } = new Tenants([LABEL, PASS, LABEL], MAX_BYTES).of(tenant("a"));
    expect(byRoute[1]).toBe(byRoute[0]);
    expect(byRoute[2]).toBe(byRoute[0]);
  });
});

describe("more tenants than are remembered", () => {
  it("never share a context, and those that came last keep theirs", () => {
    const tenants = new Tenants([LABEL], MAX_BYTES);
    const count = 10_000;
    const first = Array.from({ length: count }, (_, number) => tenants.of(tenant(`t${number}`)).context);
    const kept = tenants.of(tenant("t0")).context;
    const more = tenants.of(tenant("one more")).context;
    const forgotten = tenants.of(tenant("t1")).context;
    expect(kept).toBe(first[0]);
    expect(tenants.of(tenant("t0")).context).toBe(kept);
    expect(tenants.of(tenant(`t${count - 1}`)).context).toBe(first[count - 1]);
    expect(new Set([...first, more, forgotten]).size).toBe(count + 2);
  });

  it("are fewer when their names are long, since memory is what counts", () => {
    const tenants = new Tenants([LABEL], MAX_BYTES);
    const long = (number: number): HeaderLookup => tenant(`${number}`.padEnd(16_000, "x"));
    const first = Array.from({ length: 1000 }, (_, number) => tenants.of(long(number)).context);
    expect(tenants.of(long(999)).context).toBe(first[999]);
    expect(tenants.of(long(900)).context).toBe(first[900]);
    expect(first).not.toContain(tenants.of(long(0)).context);
  });
});
