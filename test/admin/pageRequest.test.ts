import { describe, expect, it } from "vitest";
import { pageFault } from "../../src/admin/pageRequest.ts";

const OWN = "gateway.example.org";

describe("a request that names as its host", () => {
  it.each([
    { name: "an IPv4 address", host: "10.0.0.7:8081" },
    { name: "an address without a port", host: "127.0.0.1" },
    { name: "an IPv6 address", host: "[fd00::7]:8081" },
    { name: "localhost, at the port of a kubectl port-forward", host: "localhost:18081" },
    { name: "a name below localhost", host: "gateway.localhost:8081" },
    { name: "a Service of the same namespace", host: "gateway-admin:9091" },
    { name: "a Service", host: "gateway-admin.monitoring.svc:9091" },
    { name: "a pod behind a Service, in full", host: "gateway-0.gateway.monitoring.svc.cluster.local.:8081" },
    { name: "the machine that a container runs on", host: "host.docker.internal:8081" },
    { name: "the host of admin_listen", host: "Gateway.Example.org:8081" },
    { name: "nothing, as HTTP/1.0 may", host: undefined },
  ])("$name is answered", ({ host }) => {
    expect(pageFault({ host }, OWN)).toBeNull();
    expect(pageFault({ host, "sec-fetch-site": "none" }, OWN)).toBeNull();
  });

  it.each([
    { name: "a public name", host: "example.org:8081" },
    { name: "one that begins as an address", host: "127.0.0.1.example.org" },
    { name: "one that begins as a private name", host: "gateway.svc.cluster.local.example.org" },
    { name: "one whose last label ends as a private one", host: "my-localhost.notinternal" },
    { name: "one below the host of admin_listen", host: `page.${OWN}` },
    { name: "no name at all", host: "a b" },
  ])("$name is told what is wanted", ({ host }) => {
    expect(pageFault({ host }, OWN)).toMatch(/^a web page may have .+ as its name.* want as Host an address/);
    // As far as a browser knows, it is the page's own origin that the page asks.
    const rebound = { host, origin: `http://${host}`, "sec-fetch-site": "same-origin" };
    expect(pageFault(rebound, OWN)).not.toBeNull();
  });
});

describe("a request of a browser to localhost", () => {
  const host = "localhost:8081";

  it.each([
    { name: "that a person typed in", headers: { "sec-fetch-site": "none" } },
    { name: "for a page of localhost itself", headers: { origin: "http://localhost:8081" } },
    { name: "for that, by its mark", headers: { "sec-fetch-site": "same-origin" } },
  ])("$name is answered", ({ headers }) => {
    expect(pageFault({ host, ...headers }, "")).toBeNull();
  });

  it.each([
    { name: "for a page of another origin", headers: { origin: "http://example.org" } },
    { name: "for a page of another port", headers: { origin: "http://localhost:3000" } },
    { name: "for a page whose origin is hidden", headers: { origin: "null" } },
    { name: "for an image of another site", headers: { "sec-fetch-site": "cross-site" } },
    { name: "for an image of another port", headers: { "sec-fetch-site": "same-site" } },
  ])("$name is told that a page made it", ({ headers }) => {
    expect(pageFault({ host, ...headers }, "")).toMatch(
      /^a web page of another origin made this request; want/,
    );
  });
});
