import { mkdtempSync, rmSync } from "node:fs";
import type https from "node:https";
import net from "node:net";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { UpstreamTls } from "../../src/deliver/options.ts";
import { type Identity, makeIdentity } from "./identity.ts";
import { makeParcel } from "./parcels.ts";
import { SenderUnderTest } from "./senderUnderTest.ts";
import { StubUpstream, answer } from "./stubUpstream.ts";
import type { Act } from "./stubUpstream.ts";

let folder: string;
/** Certificates that vouch for themselves, so each is its own ca. */
let forAddress: Identity;
let forName: Identity;
let client: Identity;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "deliver-tls-"));
  forAddress = makeIdentity(folder, "address", "IP:127.0.0.1");
  forName = makeIdentity(folder, "name", "DNS:upstream.test");
  client = makeIdentity(folder, "client", "DNS:gateway.test");
});
afterAll(() => {
  rmSync(folder, { recursive: true });
});

let stub: StubUpstream | undefined;
let test: SenderUnderTest | undefined;
afterEach(async () => {
  await test?.sender.close(Date.now());
  await stub?.close();
  stub = test = undefined;
});

async function deliverTo(server: https.ServerOptions, tls: UpstreamTls) {
  stub = await StubUpstream.start([answer(204)], server);
  // Long enough for a handshake; what is not trusted is tried until then.
  test = new SenderUnderTest(`https://127.0.0.1:${stub.port}/`, {
    upstream: { tls },
    delivery: { minBackoffMs: 60_000, maxBackoffMs: 60_000 },
    random: () => 0.9,
  });
  const [outcome] = await test.deliver([makeParcel()], Date.now() + 5_000);
  return outcome;
}

describe("an upstream with TLS", () => {
  const rows: {
    name: string;
    server: () => https.ServerOptions;
    tls: () => UpstreamTls;
    refusal?: RegExp;
  }[] = [
    {
      name: "takes parcels when its ca is given",
      server: () => forAddress,
      tls: () => ({ ca: forAddress.cert, insecureSkipVerify: false }),
    },
    {
      name: "gets nothing without its ca",
      server: () => forAddress,
      tls: () => ({ insecureSkipVerify: false }),
      refusal: /self-signed certificate/,
    },
    {
      name: "gets nothing with another ca",
      server: () => forAddress,
      tls: () => ({ ca: forName.cert, insecureSkipVerify: false }),
      refusal: /self-signed certificate/,
    },
    {
      name: "takes parcels unverified with insecure_skip_verify",
      server: () => forName,
      tls: () => ({ insecureSkipVerify: true }),
    },
    {
      name: "gets nothing when its certificate has another name",
      server: () => forName,
      tls: () => ({ ca: forName.cert, insecureSkipVerify: false }),
      refusal: /127\.0\.0\.1 is not in the cert's list/,
    },
    {
      name: "takes parcels when server_name tells that name",
      server: () => forName,
      tls: () => ({ ca: forName.cert, serverName: "upstream.test", insecureSkipVerify: false }),
    },
    {
      name: "gets nothing when server_name is not in its certificate",
      server: () => forAddress,
      tls: () => ({ ca: forAddress.cert, serverName: "upstream.test", insecureSkipVerify: false }),
      refusal: /upstream\.test.* is not (in|cert)/,
    },
    {
      name: "takes parcels when it asks for a client certificate and there is one",
      server: () => ({ ...forAddress, requestCert: true, rejectUnauthorized: true, ca: client.cert }),
      tls: () => ({ ca: forAddress.cert, ...client, insecureSkipVerify: false }),
    },
    {
      name: "gets nothing when it asks for a client certificate and there is none",
      server: () => ({ ...forAddress, requestCert: true, rejectUnauthorized: true, ca: client.cert }),
      tls: () => ({ ca: forAddress.cert, insecureSkipVerify: false }),
      refusal: /./,
    },
    {
      name: "gets nothing when it is too old for min_version",
      server: () => ({ ...forAddress, maxVersion: "TLSv1.2" }),
      tls: () => ({ ca: forAddress.cert, insecureSkipVerify: false, minVersion: "TLSv1.3" }),
      refusal: /protocol version/,
    },
    {
      name: "gets nothing when it is too new for max_version",
      server: () => ({ ...forAddress, minVersion: "TLSv1.3" }),
      tls: () => ({ ca: forAddress.cert, insecureSkipVerify: false, maxVersion: "TLSv1.2" }),
      refusal: /protocol version/,
    },
  ];
  it.each(rows)("$name", async ({ server, tls, refusal }) => {
    const outcome = await deliverTo(server(), tls());
    if (refusal === undefined) {
      expect(outcome).toEqual({ kind: "delivered" });
    } else {
      const cause = expect.stringMatching(refusal) as string;
      expect(outcome).toMatchObject({ kind: "undelivered", cause });
      expect(stub?.requests).toEqual([]);
      expect(test?.attempts).toEqual(["retry"]);
    }
  });

  it("gets a request again at once when it closes a connection that was kept", async () => {
    const used = new WeakSet<net.Socket>();
    let closed = 0;
    const act: Act = (response, socket) => {
      if (used.has(socket)) {
        closed += 1;
        socket.destroy();
      } else {
        used.add(socket);
        response.writeHead(204).end();
      }
    };
    stub = await StubUpstream.start([act], forAddress);
    const tls = { ca: forAddress.cert, insecureSkipVerify: false };
    test = new SenderUnderTest(`https://127.0.0.1:${stub.port}/`, { upstream: { tls } });
    while (closed === 0) await test.deliver([makeParcel()], Date.now() + 5_000);
    expect(new Set(test.attempts)).toEqual(new Set(["delivered"]));
  });

  it("does not when it closes a new one, after the handshake", async () => {
    const close: Act = (_response, socket) => socket.destroy();
    stub = await StubUpstream.start([close], forAddress);
    test = new SenderUnderTest(`https://127.0.0.1:${stub.port}/`, {
      upstream: { tls: { ca: forAddress.cert, insecureSkipVerify: false } },
      delivery: { minBackoffMs: 60_000, maxBackoffMs: 60_000 },
      random: () => 0.9,
    });
    expect(await test.deliver([makeParcel()], Date.now() + 5_000)).toMatchObject([{ kind: "undelivered" }]);
    expect(test.attempts).toEqual(["retry"]);
    expect(stub.requests).toHaveLength(1);
  });

  it("is not waited for beyond the remote timeout when its handshake does not end", async () => {
    const silent = net.createServer();
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    const { port } = silent.address() as AddressInfo;
    test = new SenderUnderTest(`https://127.0.0.1:${port}/`, { delivery: { remoteTimeoutMs: 100 } });
    const [outcome] = await test.deliver([makeParcel()], Date.now() + 50);
    expect(outcome).toMatchObject({ kind: "undelivered" });
    await expect.poll(() => test?.attempts).toEqual(["retry"]);
    expect(test.durationsMs[0]).toBeLessThan(3_000); // and not until the connection is given up after 5 s
    expect(test.settled.total("refused").parcels).toBe(1);
    silent.close();
  });
});

describe("a tls_config that cannot be used", () => {
  const rows: { name: string; tls: () => UpstreamTls }[] = [
    {
      name: "a certificate that is none",
      tls: () => ({ cert: "none", key: client.key, insecureSkipVerify: false }),
    },
    {
      name: "a key that is none",
      tls: () => ({ cert: client.cert, key: "none", insecureSkipVerify: false }),
    },
    {
      name: "the key of another certificate",
      tls: () => ({ cert: client.cert, key: forName.key, insecureSkipVerify: false }),
    },
  ];
  it.each(rows)("is an error when the sender is made: $name", ({ tls }) => {
    const make = () => new SenderUnderTest("https://127.0.0.1:1/", { upstream: { tls: tls() } });
    expect(make).toThrow(/^upstream vmagent-2: tls_config cannot be used: /);
    expect(make).toThrow(expect.objectContaining({ code: "DELIVERY_TLS" }) as Error);
  });
});
