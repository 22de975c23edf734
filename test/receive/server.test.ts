import { connect } from "node:net";
import { Agent, request as httpRequest } from "node:http";
import { afterEach, describe, expect, it } from "vitest";
import { compress } from "snappyjs";
import { type MemoryHolder, MemoryBudget } from "../../src/memoryBudget.ts";
import type { WriteAnswer } from "../../src/receive/answer.ts";
import type { BodyLimits, ConnectionOptions } from "../../src/receive/options.ts";
import { IngestServer, type RequestHeaders, WRITE_PATHS } from "../../src/receive/server.ts";
import { WireError } from "../../src/wire/errors.ts";
import { uncompressBlock } from "../../src/wire/snappy.ts";
import { collectGarbage } from "../deliver/garbage.ts";

type Options = BodyLimits & ConnectionOptions;

const OPTIONS: Options = { maxBodyBytes: 1000, bodyTimeoutMs: 5000, maxConnectionAgeMs: 0 };
const MAX_DECODED_BYTES = 2000;

/** A listener whose handler answers as told, and that records what reached it. */
class Rig {
  readonly written: Uint8Array[] = [];
  /** To be called as if the last request were routed. */
  onRouted: () => void = () => undefined;
  /** In how many pieces each body reached the handler. */
  readonly pieces: number[] = [];
  readonly headers: RequestHeaders[] = [];
  /** The last body, as long as anyone else keeps it. */
  lastBody: WeakRef<readonly Uint8Array[]> | null = null;
  readonly statuses: (number | null)[] = [];
  readonly malformed: string[] = [];
  answer: () => Promise<WriteAnswer> = () => Promise.resolve({ status: 204, body: "" });
  readonly server: IngestServer;
  readonly memory: MemoryHolder;
  connections = 0;
  port = 0;
  /** How far the listener's clock is ahead. */
  aheadMs = 0;
  chance = 0.5;

  constructor(options: Partial<Options>, memoryBytes: number) {
    this.memory = new MemoryBudget(memoryBytes).holder();
    this.server = new IngestServer(
      { ...OPTIONS, ...options },
      {
        write: (body, headers, onRouted) => {
          this.lastBody = new WeakRef(body);
          this.headers.push(headers);
          this.pieces.push(body.length);
          this.written.push(uncompressBlock(Buffer.concat(body), MAX_DECODED_BYTES));
          this.onRouted = onRouted;
          return this.answer();
        },
        refuse: () => ({ status: 503, body: "no memory", retryAfterSeconds: 2 }),
        metrics: () => Promise.resolve({ contentType: "text/plain", text: "a_metric 1\n" }),
      },
      {
        connected: () => {
          this.connections += 1;
        },
        answered: (status) => this.statuses.push(status),
        arrived: () => undefined,
        bodyRead: () => undefined,
        malformed: ({ code }) => this.malformed.push(code),
        failed: () => undefined,
      },
      { now: () => Date.now() + this.aheadMs, random: () => this.chance },
      () => this.memory,
    );
  }
}

interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

const rigs: Rig[] = [];

async function startRig(options: Partial<Options> = {}, memoryBytes = Infinity): Promise<Rig> {
  const rig = new Rig(options, memoryBytes);
  rigs.push(rig);
  rig.port = await rig.server.listen({ host: "127.0.0.1", port: 0 });
  return rig;
}

afterEach(async () => {
  for (const rig of rigs.splice(0)) {
    rig.server.abort();
    await rig.server.stop();
  }
});

function send(
  { port }: Rig,
  options: {
    method?: string;
    path?: string;
    headers?: Record<string, string>;
    body?: Uint8Array;
    chunked?: boolean;
    agent?: Agent;
  } = {},
): Promise<Reply> {
  const { method = "POST", path = "/api/v1/write", headers = {}, body, chunked = false, agent } = options;
  return new Promise((resolve, reject) => {
    const length = chunked
      ? { "Transfer-Encoding": "chunked" }
      : body === undefined
        ? {}
        : { "Content-Length": String(body.length) };
    const request = httpRequest(
      { port, host: "127.0.0.1", method, path, headers: { ...headers, ...length }, agent },
      (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("end", () => {
          const { statusCode = 0, headers: got } = response;
          resolve({ status: statusCode, headers: got, text: Buffer.concat(chunks).toString() });
        });
      },
    );
    request.on("error", reject);
    request.end(body);
  });
}

/** Sends bytes as they are and answers everything that came back by the time the other side closed. */
function sendRaw(
  { port }: Rig,
  head: string,
  then: (write: (text: string) => void) => void = () => undefined,
): Promise<string> {
  return new Promise((resolve) => {
    let got = "";
    const socket = connect(port, "127.0.0.1", () => {
      socket.write(head, "latin1");
      then((text) => socket.write(text, "latin1"));
    });
    socket.on("data", (chunk) => {
      got += chunk.toString("latin1");
    });
    socket.on("error", () => undefined);
    socket.on("close", () => {
      resolve(got);
    });
  });
}

const PLAIN = Buffer.from("plain bytes of a request");
const BODY = compress(new Uint8Array(PLAIN));

describe("a write path", () => {
  it.each(WRITE_PATHS)("%s hands the plain bytes on and answers 204 without a body", async (path) => {
    const rig = await startRig();
    const reply = await send(rig, { path: `${path}?some=argument`, body: BODY });
    expect(reply).toMatchObject({ status: 204, text: "" });
    expect(rig.written.map((bytes) => Buffer.from(bytes))).toEqual([PLAIN]);
    expect(rig.statuses).toEqual([204]);
  });

  it.each([
    { name: "no headers at all", headers: {} },
    {
      name: "Prometheus' headers",
      headers: { "Content-Encoding": "snappy", "Content-Type": "application/x-protobuf" },
    },
    { name: "SNAPPY in capitals", headers: { "Content-Encoding": "SNAPPY" } },
    {
      name: "the 1.0 message named, with blanks, case and quotes",
      headers: { "Content-Type": 'Application/X-Protobuf ; Proto="prometheus.WriteRequest"' },
    },
  ])("takes $name as remote write 1.0 in snappy", async ({ headers }) => {
    const rig = await startRig();
    expect((await send(rig, { headers, body: BODY })).status).toBe(204);
    expect(rig.written).toHaveLength(1);
  });

  it("hands the headers on with their values byte for byte, each time they came, under their names in lower case", async () => {
    const rig = await startRig();
    const head = `POST /api/v1/write HTTP/1.1\r\nHost: a\r\nX-Scope-OrgID:  t\u00e9\u0080\u00ff \r\nX-SCOPE-orgid: b\r\n`;
    await sendRaw(
      rig,
      `${head}Connection: close\r\nContent-Length: ${BODY.length}\r\n\r\n${Buffer.from(BODY).toString("latin1")}`,
    );
    expect(rig.headers[0]?.["x-scope-orgid"]).toEqual(["t\u00e9\u0080\u00ff", "b"]);
    expect(rig.headers[0]?.["x-other"]).toBe(undefined);
  });

  it("keeps no body while its delivery is waited for", async () => {
    const rig = await startRig();
    let finish: (answer: WriteAnswer) => void = () => undefined;
    rig.answer = () =>
      new Promise((resolve) => {
        finish = resolve;
      });
    const reply = send(rig, { body: BODY });
    await expect.poll(() => rig.written.length).toBe(1);
    await expect
      .poll(() => {
        collectGarbage();
        return rig.lastBody?.deref() === undefined;
      })
      .toBe(true);
    finish({ status: 204, body: "" });
    expect((await reply).status).toBe(204);
  });

  it.each([
    { name: "zstd", headers: { "Content-Encoding": "zstd" }, says: 'Content-Encoding "zstd"' },
    { name: "gzip", headers: { "Content-Encoding": "gzip" }, says: 'Content-Encoding "gzip"' },
    { name: "br", headers: { "Content-Encoding": "br" }, says: 'Content-Encoding "br"' },
    { name: "identity", headers: { "Content-Encoding": "identity" }, says: 'Content-Encoding "identity"' },
    { name: "snappy twice", headers: { "Content-Encoding": "snappy, snappy" }, says: "want snappy" },
    {
      name: "the 2.0 message",
      headers: { "Content-Type": "application/x-protobuf;proto=io.prometheus.write.v2.Request" },
      says: 'message "io.prometheus.write.v2.Request"',
    },
    {
      name: "the 2.0 message behind a blank",
      headers: { "Content-Type": "application/x-protobuf; proto=io.prometheus.write.v2.Request" },
      says: 'message "io.prometheus.write.v2.Request"',
    },
    {
      name: "JSON",
      headers: { "Content-Type": "application/json" },
      says: 'Content-Type "application/json"',
    },
  ])("answers $name with 415 once, and forwards nothing", async ({ headers, says }) => {
    const rig = await startRig();
    const reply = await send(rig, { headers, body: BODY });
    expect(reply.status).toBe(415);
    expect(reply.text).toContain(says);
    expect(rig.written).toEqual([]);
    expect(rig.statuses).toEqual([415]);
  });

  it.each(["GET", "HEAD", "PUT", "DELETE", "OPTIONS"])("answers %s with 405 and Allow", async (method) => {
    const rig = await startRig();
    const reply = await send(rig, { method });
    expect(reply.status).toBe(405);
    expect(reply.headers["allow"]).toBe("POST");
  });

  it("passes on status, text and Retry-After of the handler", async () => {
    const rig = await startRig();
    rig.answer = () => Promise.resolve({ status: 503, body: "come again", retryAfterSeconds: 3 });
    const reply = await send(rig, { body: BODY });
    expect(reply).toMatchObject({ status: 503, text: "come again" });
    expect(reply.headers["retry-after"]).toBe("3");
  });

  it("answers 500, which senders retry, when the handler fails by a bug, and goes on serving", async () => {
    const rig = await startRig();
    rig.answer = () => Promise.reject(new Error("a bug"));
    expect((await send(rig, { body: BODY })).status).toBe(500);
    rig.answer = () => Promise.resolve({ status: 204, body: "" });
    expect((await send(rig, { body: BODY })).status).toBe(204);
  });
});

describe("a body that is wrong", () => {
  it("of no bytes is answered 400", async () => {
    const rig = await startRig();
    const reply = await send(rig, { body: new Uint8Array(0) });
    expect(reply.status).toBe(400);
    expect(reply.text).toContain("empty");
  });

  it("of snappy of nothing is a request without content", async () => {
    const rig = await startRig();
    expect((await send(rig, { body: Uint8Array.of(0) })).status).toBe(204);
    expect(rig.written.map(({ length }) => length)).toEqual([0]);
  });

  it.each([
    { name: "declared", chunked: false, says: "declares 5000 bytes" },
    { name: "chunked", chunked: true, says: /has at least \d{4} bytes/ },
  ])("over the limit, $name, is answered 400 with both numbers", async ({ chunked, says }) => {
    const rig = await startRig();
    const reply = await send(rig, { body: new Uint8Array(5000), chunked });
    expect(reply.status).toBe(400);
    expect(reply.text).toMatch(says);
    expect(reply.text).toContain("the limit is 1000 bytes");
    expect(rig.malformed).toEqual(["WIRE_TOO_LARGE"]);
    expect(rig.written).toEqual([]);
  });

  it("that is declared too long is answered without waiting for it to be sent", async () => {
    const rig = await startRig();
    const got = await sendRaw(
      rig,
      "POST /api/v1/write HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000000\r\n\r\n",
    );
    expect(got).toMatch(/^HTTP\/1.1 400 [^]*declares 1000000000000 bytes, the limit is 1000 bytes/);
    expect(rig.malformed).toEqual(["WIRE_TOO_LARGE"]);
  });

  it("that declares more plain bytes than the limit is answered 400 with both numbers", async () => {
    const rig = await startRig();
    // 4,000,000,000 as a varint, then one literal byte.
    const reply = await send(rig, { body: Uint8Array.of(0x80, 0xd0, 0xac, 0xf3, 0x0e, 0, 1) });
    expect(reply.status).toBe(400);
    expect(reply.text).toContain("declares 4000000000 plain bytes, the limit is 2000");
    expect(rig.malformed).toEqual(["WIRE_TOO_LARGE"]);
  });

  it.each([
    { name: "framed snappy", body: Buffer.from("ff060000734e61507059", "hex"), says: /framed.* byte 0/ },
    { name: "an 11-byte length", body: Buffer.alloc(11, 0xff), says: /length at byte 0/ },
    { name: "truncated snappy", body: Buffer.from(BODY.subarray(0, 9)), says: /byte \d+/ },
    { name: "no snappy", body: Buffer.from("{}hello"), says: /byte \d+/ },
  ])("of $name is answered 400 that says where", async ({ body, says }) => {
    const rig = await startRig();
    const reply = await send(rig, { body });
    expect(reply.status).toBe(400);
    expect(reply.text).toMatch(says);
    expect(reply.text).toContain("nothing was forwarded");
    expect(rig.malformed).toEqual(["WIRE_SNAPPY"]);
    expect(rig.written).toEqual([]);
  });

  it("that the handler finds malformed is answered 400 with its words", async () => {
    const rig = await startRig();
    rig.answer = () => Promise.reject(new WireError("WIRE_TRUNCATED", 7, "cut at byte 7"));
    const reply = await send(rig, { body: BODY });
    expect(reply).toMatchObject({ status: 400, text: "cut at byte 7; nothing was forwarded" });
    expect(rig.malformed).toEqual(["WIRE_TRUNCATED"]);
  });
});

describe("a body in chunks of a byte", () => {
  it("arrives whole, and in few pieces", async () => {
    const rig = await startRig({ maxBodyBytes: 20_000 });
    const plain = Buffer.from(Array.from({ length: 1900 }, (_, index) => (index * index * 7) % 251));
    const body = Buffer.from(compress(new Uint8Array(plain)));
    const chunks = Array.from(body, (byte) => `1\r\n${String.fromCharCode(byte)}\r\n`).join("");
    const head =
      "POST /api/v1/write HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n";
    expect(await sendRaw(rig, `${head}${chunks}0\r\n\r\n`)).toMatch(/^HTTP\/1.1 204/);
    expect(rig.written.map((bytes) => Buffer.from(bytes).equals(plain))).toEqual([true]);
    expect(rig.pieces[0]).toBeLessThanOrEqual(2);
  });
});

describe("a client that is slow or leaves", () => {
  it("has its connection closed without a status when its body does not come in time", async () => {
    const rig = await startRig({ bodyTimeoutMs: 50 });
    const got = await sendRaw(rig, "POST /api/v1/write HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc");
    expect(got).toBe("");
    await expect.poll(() => rig.statuses).toEqual([null]);
    expect(rig.written).toEqual([]);
  });

  it("is forgotten when it goes in the middle of its body", async () => {
    const rig = await startRig();
    await new Promise<void>((resolve) => {
      const socket = connect(rig.port, "127.0.0.1", () => {
        socket.write("POST /api/v1/write HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc", () => {
          socket.destroy();
          resolve();
        });
      });
    });
    await expect.poll(() => rig.statuses).toEqual([null]);
    expect(rig.written).toEqual([]);
  });

  it.each([
    { name: "an unknown path", head: "POST /nope", status: 404 },
    { name: "another method", head: "PUT /api/v1/write", status: 405 },
    { name: "health", head: "GET /-/healthy", status: 200 },
  ])(
    "has its connection closed when it asks for $name and keeps a body for later",
    async ({ head, status }) => {
      const rig = await startRig();
      const got = await sendRaw(rig, `${head} HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000\r\n\r\nabc`);
      expect(got).toMatch(new RegExp(`^HTTP/1.1 ${status} [^]*Connection: close`));
    },
  );

  it("that does not speak HTTP behind a request gets that request's fate, and no other answer", async () => {
    const rig = await startRig();
    rig.answer = () => new Promise(() => undefined);
    const head = `POST /api/v1/write HTTP/1.1\r\nHost: a\r\nContent-Length: ${BODY.length}\r\n\r\n`;
    const got = await sendRaw(rig, `${head}${Buffer.from(BODY).toString("latin1")}garbage\r\n\r\n`);
    expect(got).toBe("");
  });

  it("that does not speak HTTP gets 400 and is closed", async () => {
    const rig = await startRig();
    expect(await sendRaw(rig, "hello\r\n\r\n")).toMatch(/^HTTP\/1.1 400 Bad Request\r\n/);
  });
});

/** The head of a request, and what there is of its body. */
function begun(length: string, body: string): string {
  return `POST /api/v1/write HTTP/1.1\r\nHost: a\r\n${length}\r\n\r\n${body}`;
}

describe("the memory for bodies", () => {
  const length = `Content-Length: ${BODY.length}`;

  it("counts a body from the head that declares it until it is routed, however long its delivery takes", async () => {
    const rig = await startRig();
    let finish: (answer: WriteAnswer) => void = () => undefined;
    rig.answer = () =>
      new Promise((resolve) => {
        finish = resolve;
      });
    const got = sendRaw(rig, begun(`${length}\r\nConnection: close`, ""), (write) => {
      void expect
        .poll(() => rig.memory.heldBytes)
        .toBe(BODY.length)
        .then(() => {
          write(Buffer.from(BODY).toString("latin1"));
        });
    });
    await expect.poll(() => rig.written.length).toBe(1);
    expect(rig.memory.heldBytes).toBe(BODY.length);
    rig.onRouted();
    expect(rig.memory.heldBytes).toBe(0);
    finish({ status: 204, body: "" });
    expect(await got).toMatch(/^HTTP\/1.1 204 /);
    expect(rig.memory.heldBytes).toBe(0);
  });

  it("counts a body that declares no length as it comes", async () => {
    const rig = await startRig();
    let end: () => void = () => undefined;
    const got = sendRaw(
      rig,
      begun("Transfer-Encoding: chunked\r\nConnection: close", "5\r\nabcde\r\n"),
      (write) => {
        end = () => {
          write("0\r\n\r\n");
        };
      },
    );
    await expect.poll(() => rig.memory.heldBytes).toBe(5);
    end();
    expect(await got).toMatch(/^HTTP\/1.1 400 /);
    expect(rig.memory.heldBytes).toBe(0);
  });

  it.each([
    { name: "declares its length", chunked: false },
    { name: "does not", chunked: true },
  ])(
    "that is used up has a request refused whose body $name, and served when there is some again",
    async ({ chunked }) => {
      const rig = await startRig({}, 2 * BODY.length);
      rig.answer = () => new Promise(() => undefined);
      void send(rig, { body: BODY }).catch(() => undefined);
      await expect.poll(() => rig.written.length).toBe(1);

      const refused = await send(rig, { body: BODY, chunked });
      expect(refused).toMatchObject({ status: 503, text: "no memory", headers: { "retry-after": "2" } });
      expect(rig.written).toHaveLength(1);
      expect(rig.memory).toMatchObject({ heldBytes: BODY.length, refusals: 1 });

      rig.onRouted();
      rig.answer = () => Promise.resolve({ status: 204, body: "" });
      expect((await send(rig, { body: BODY, chunked })).status).toBe(204);
      expect(rig.memory.heldBytes).toBe(0);
    },
  );

  it("that is used up has a request answered whose body never comes", async () => {
    const rig = await startRig({}, 2 * BODY.length);
    rig.answer = () => new Promise(() => undefined);
    void send(rig, { body: BODY }).catch(() => undefined);
    await expect.poll(() => rig.written.length).toBe(1);
    expect(await sendRaw(rig, begun(length, ""))).toMatch(/^HTTP\/1.1 503 [^]*Connection: close/);
  });

  it.each([
    { name: "malformed", request: begun(`${length}\r\nConnection: close`, "?".repeat(BODY.length)) },
    {
      name: "not supported",
      request: begun("Content-Encoding: gzip\r\nContent-Length: 3\r\nConnection: close", "abc"),
    },
    { name: "too large", request: begun("Content-Length: 1001\r\nConnection: close", "?".repeat(1001)) },
    {
      name: "too large in chunks",
      request: begun(
        "Transfer-Encoding: chunked\r\nConnection: close",
        `7d1\r\n${"?".repeat(2001)}\r\n0\r\n\r\n`,
      ),
    },
    { name: "too slow", request: begun("Content-Length: 10", "abc") },
    {
      name: "no HTTP in the middle of its chunks",
      request: begun("Transfer-Encoding: chunked", "3\r\nabc\r\nxyz\r\n"),
    },
  ])("has all back of a request that is $name", async ({ request }) => {
    const rig = await startRig({ bodyTimeoutMs: 50 });
    await sendRaw(rig, request);
    await expect.poll(() => rig.statuses.length).toBe(1);
    expect(rig.memory.heldBytes).toBe(0);
  });

  it("has all back of a request whose client goes in the middle of its body", async () => {
    const rig = await startRig();
    const socket = connect(rig.port, "127.0.0.1");
    socket.write(begun(length, "abc"));
    await expect.poll(() => rig.memory.heldBytes).toBe(BODY.length);
    socket.destroy();
    await expect.poll(() => rig.memory.heldBytes).toBe(0);
  });
});

describe("connections", () => {
  it("are told one by one, whatever comes over them", async () => {
    const rig = await startRig();
    await sendRaw(rig, "hello\r\n\r\n");
    expect(rig.connections).toBe(1);
    const twoRequests = "GET /-/healthy HTTP/1.1\r\nHost: a\r\n";
    await sendRaw(rig, `${twoRequests}\r\n${twoRequests}Connection: close\r\n\r\n`);
    expect(rig.connections).toBe(2);
  });
});

describe("a connection that comes of age", () => {
  const MINUTE_MS = 60_000;
  const agents: Agent[] = [];
  afterEach(() => {
    for (const agent of agents.splice(0)) agent.destroy();
  });

  /** Sends requests over one connection; resolves with what the last is answered for it: keep-alive or close. */
  function sender(rig: Rig): () => Promise<unknown> {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    agents.push(agent);
    return async () => (await send(rig, { body: BODY, agent })).headers["connection"];
  }

  it.each([
    { name: "exactly", chance: 0.5, ageMs: MINUTE_MS },
    { name: "a tenth before", chance: 0, ageMs: 54_000 },
    { name: "nearly a tenth after", chance: 0.99, ageMs: 65_880 },
  ])("$name, as chance wants it, is closed with its next answer", async ({ chance, ageMs }) => {
    const rig = await startRig({ maxConnectionAgeMs: MINUTE_MS });
    rig.chance = chance;
    const sendOne = sender(rig);
    expect(await sendOne()).toBe("keep-alive");
    rig.aheadMs = ageMs - 5_000;
    expect(await sendOne()).toBe("keep-alive");
    rig.aheadMs = ageMs;
    expect(await sendOne()).toBe("close");
    expect(rig.connections).toBe(1);
    expect(await sendOne()).toBe("keep-alive");
    expect(rig.connections).toBe(2);
    expect(rig.statuses).toEqual([204, 204, 204, 204]);
  });

  it("never, with an age of nothing", async () => {
    const rig = await startRig({ maxConnectionAgeMs: 0 });
    const sendOne = sender(rig);
    await sendOne();
    rig.aheadMs = 1e12;
    expect(await sendOne()).toBe("keep-alive");
    expect(rig.connections).toBe(1);
  });

  it("in the middle of a body is closed with the answer to it", async () => {
    const rig = await startRig({ maxConnectionAgeMs: MINUTE_MS });
    const body = Buffer.from(BODY).toString("latin1");
    const head = `POST /api/v1/write HTTP/1.1\r\nHost: a\r\nContent-Length: ${BODY.length}\r\n\r\n`;
    let sendRest = (): void => undefined;
    const reply = sendRaw(rig, head + body.slice(0, 5), (write) => {
      sendRest = () => {
        write(body.slice(5));
      };
    });
    await expect.poll(() => rig.connections).toBe(1);
    rig.aheadMs = 2 * MINUTE_MS;
    sendRest();
    expect(await reply).toMatch(/^HTTP\/1.1 204 [^]*Connection: close/);
  });

  it("in the middle of a head is closed with the answer to it, and those that are idle at once", async () => {
    const rig = await startRig({ maxConnectionAgeMs: 300 });
    const body = Buffer.from(BODY).toString("latin1");
    const head = `POST /api/v1/write HTTP/1.1\r\nHost: a\r\nContent-Length: ${BODY.length}\r\n\r\n`;
    let sendRest = (): void => undefined;
    const late = sendRaw(rig, head.slice(0, 30), (write) => {
      sendRest = () => {
        write(head.slice(30) + body);
      };
    });
    const began = Date.now();
    const [unused, used] = await Promise.all([sendRaw(rig, ""), sendRaw(rig, head + body)]);
    expect(Date.now() - began).toBeGreaterThanOrEqual(290);
    expect(unused).toBe("");
    expect(used).toMatch(/^HTTP\/1.1 204 [^]*Connection: keep-alive/);
    sendRest();
    expect(await late).toMatch(/^HTTP\/1.1 204 [^]*Connection: close/);
    expect(rig.statuses).toEqual([204, 204]);
  });

  it("while the event loop is busy is closed with the answer to what came meanwhile", async () => {
    const rig = await startRig({ maxConnectionAgeMs: 50 });
    const request = `POST /api/v1/write HTTP/1.1\r\nHost: a\r\nContent-Length: ${BODY.length}\r\n\r\n${Buffer.from(BODY).toString("latin1")}`;
    const got = await sendRaw(rig, "", (write) => {
      // Timers come next then, before anything is read.
      setImmediate(() => {
        write(request);
        holdUpFor(100);
      });
    });
    expect(got).toMatch(/^HTTP\/1.1 204 [^]*Connection: close/);
    expect(rig.statuses).toEqual([204]);
  });
});

/** Keeps the event loop from everything else. */
function holdUpFor(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

describe("the other paths", () => {
  it("are healthy from the start, and ready when told", async () => {
    const rig = await startRig();
    const get = async (path: string): Promise<number> => (await send(rig, { method: "GET", path })).status;
    for (const path of ["/-/healthy", "/-/health", "/health"]) expect(await get(path)).toBe(200);
    expect(await get("/-/ready")).toBe(503);
    rig.server.setReady(true);
    expect(await get("/-/ready")).toBe(200);
    rig.server.setReady(false);
    expect(await get("/-/ready")).toBe(503);
    expect(await get("/-/healthy")).toBe(200);
  });

  it("keep connections open, until it is ready no longer: then senders are to go elsewhere", async () => {
    const rig = await startRig();
    const connection = async (): Promise<unknown> => (await send(rig, { body: BODY })).headers["connection"];
    expect(await connection()).toBe("keep-alive");
    rig.server.setReady(true);
    expect(await connection()).toBe("keep-alive");
    rig.server.setReady(false);
    expect(await connection()).toBe("close");
    expect(rig.written).toHaveLength(3);
  });

  it("show metrics", async () => {
    const rig = await startRig();
    expect(await send(rig, { method: "GET", path: "/metrics" })).toMatchObject({
      status: 200,
      text: "a_metric 1\n",
    });
  });

  it("do not exist otherwise", async () => {
    const rig = await startRig();
    const reply = await send(rig, { path: "/api/v1/wriet", body: BODY });
    expect(reply.status).toBe(404);
    expect(reply.text).toContain("/api/v1/write");
    expect(await send(rig, { method: "POST", path: "/metrics" })).toMatchObject({ status: 405 });
  });
});

describe("stopping", () => {
  it("finishes the request under way, then closes its connection", async () => {
    const rig = await startRig();
    let finish: (answer: WriteAnswer) => void = () => undefined;
    rig.answer = () =>
      new Promise((resolve) => {
        finish = resolve;
      });
    const reply = send(rig, { body: BODY });
    await expect.poll(() => rig.written.length).toBe(1);
    const stopped = rig.server.stop();
    finish({ status: 204, body: "" });
    expect((await reply).status).toBe(204);
    await stopped;
    await expect(send(rig, { body: BODY })).rejects.toThrow(/ECONNREFUSED/);
  });
});
