import { describe, expect, it } from "vitest";
import type { Dispatcher } from "undici";
import type { Reply } from "../../src/deliver/classify.ts";
import { Exchange } from "../../src/deliver/exchange.ts";

/** The end of an exchange's connection that undici hands out, and how it was aborted. */
function makeController(): Dispatcher.DispatchController & { readonly reasons: string[] } {
  const reasons: string[] = [];
  return {
    reasons,
    aborted: false,
    paused: false,
    reason: null,
    abort: (reason) => reasons.push(reason.message),
    pause: () => undefined,
    resume: () => undefined,
  };
}

describe("an exchange that is given up while it waits for a connection", () => {
  it("fails at once, and does not begin when the connection comes after all", async () => {
    const replies: Reply[] = [];
    const exchange = new Exchange(
      60_000,
      (reply) => replies.push(reply),
      () => true,
    );
    exchange.abort("the gateway is shutting down");
    expect(replies).toEqual([]);
    await Promise.resolve();
    expect(replies).toEqual([{ kind: "failed", cause: "the gateway is shutting down" }]);

    const controller = makeController();
    exchange.onRequestStart(controller);
    exchange.onResponseError(controller, new Error("aborted"));
    await Promise.resolve();
    expect(controller.reasons).toEqual(["the gateway is shutting down"]);
    expect(replies).toHaveLength(1);
  });
});
