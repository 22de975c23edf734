/** An upstream that closes a connection while a request goes out over it. */
import type { Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { makeParcel, numbersIn } from "./parcels.ts";
import { SenderUnderTest } from "./senderUnderTest.ts";
import { HeldAnswers, StubUpstream, answer, rawThenEnd, rawThenReset, reset } from "./stubUpstream.ts";
import type { Act } from "./stubUpstream.ts";

const OK = answer(204);
const MANY = 50;

let stub: StubUpstream;
let test: SenderUnderTest;
/** How often a connection was ended. */
let ended: number;
afterEach(async () => {
  await test.sender.close(Date.now());
  await stub.close();
});

/** Answers the first request of each connection, and does this with a further one. */
function thenEnd(end: Act): Act {
  const used = new WeakSet<Socket>();
  return (response, socket) => {
    if (used.has(socket)) {
      ended += 1;
      end(response, socket);
    } else {
      used.add(socket);
      OK(response, socket);
    }
  };
}

async function start(act: Act): Promise<void> {
  ended = 0;
  stub = await StubUpstream.start([act]);
  test = new SenderUnderTest(`http://127.0.0.1:${stub.port}/`, {
    breaker: { consecutiveFailures: 1, resetAfterMs: 60_000 },
  });
}

async function send(number: number): Promise<string | undefined> {
  return (await test.deliver([makeParcel(number)], Date.now() + 5_000))[0]?.kind;
}

describe("a connection that has served requests and is closed under the next", () => {
  it.each([
    { name: "in order", end: rawThenEnd("") },
    { name: "by a reset", end: reset },
  ])("$name: the request goes out again at once, and it counts nowhere", async ({ end }) => {
    await start(thenEnd(end));
    for (let number = 1; number <= MANY; number += 1) expect(await send(number)).toBe("delivered");
    expect(ended).toBeGreaterThan(0);
    expect(stub.requests).toHaveLength(MANY + ended);
    expect([...new Set(stub.requests.flatMap(({ body }) => numbersIn(body)))]).toHaveLength(MANY);
    expect(test.attempts).toEqual(Array(MANY).fill("delivered"));
    expect(test.breakerStates).toEqual([]);
    expect(test.log("info")).toEqual([]);
    expect(test.logText()).not.toContain("attempt 2");
  });

  it("goes out again over a connection that is new, though others are kept", async () => {
    const held = new HeldAnswers();
    const used = new WeakSet<Socket>();
    await start((response, socket) => {
      if (used.has(socket)) {
        ended += 1;
        reset(response, socket);
      } else {
        used.add(socket);
        (stub.requests.length <= 4 ? held.act : OK)(response, socket);
      }
    });
    // Tenants have lanes of their own, and so connections.
    const sendAll = () =>
      Promise.all(
        ["a", "b", "c", "d"].map((tenant) => test.deliver([makeParcel()], Date.now() + 5_000, 0, tenant)),
      );
    const first = sendAll();
    await expect.poll(() => held.count).toBe(4);
    held.answerAll(204);
    await first;
    while (ended < 4) await sendAll();
    expect(test.attempts.filter((result) => result !== "delivered")).toEqual([]);
  });

  it("once only: if that fails too, it is an attempt that failed", async () => {
    const used = new WeakSet<Socket>();
    await start((response, socket) => {
      const ends = ended > 0 || used.has(socket);
      if (ends) ended += 1;
      used.add(socket);
      (ends ? reset : OK)(response, socket);
    });
    await expect.poll(() => send(1)).toBe("undelivered");
    expect(ended).toBe(2);
    expect(test.attempts.filter((result) => result === "retry")).toHaveLength(1);
    expect(test.breakerStates).toEqual(["open"]);
  });

  it("after the beginning of a response: it is an attempt that failed", async () => {
    await start(thenEnd(rawThenReset("HTTP/1.1 2")));
    await expect.poll(() => send(1)).toBe("undelivered");
    expect(test.attempts.at(-1)).toBe("retry");
    expect(ended).toBe(1);
    expect(test.breakerStates).toEqual(["open"]);
  });
});

describe("a connection that is closed under its first request", () => {
  it("is an attempt that failed", async () => {
    await start(reset);
    expect(await send(1)).toBe("undelivered");
    expect(test.attempts).toEqual(["retry"]);
    expect(stub.requests).toHaveLength(1);
    expect(test.breakerStates).toEqual(["open"]);
  });
});
