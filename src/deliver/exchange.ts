/**
 * One POST and its reply, in bounded time and memory, as undici calls it back.
 *
 * It judges nothing (see classify.ts), and may be sent again once, before any byte of a response is there. Its timer is the hard deadline from waiting for a connection
 * to the last byte of the response, of which what follows the head gets less; undici's own timeouts are off.
 */
import type { Dispatcher } from "undici";
import type { Reply } from "./classify.ts";
import { formatMs } from "./cleanText.ts";

/** Enough for the one line that is made of a reply; what is longer costs its connection. */
const MAX_TEXT_BYTES = 1024;
/** A 2xx body is thrown away up to this length so that the connection can be used again. */
const MAX_IGNORED_BYTES = 16 * 1024;
/** The status is what matters: what follows it is not waited for any longer. */
const BODY_TIMEOUT_MS = 1_000;

type Head = Omit<Extract<Reply, { kind: "answered" }>, "kind" | "text">;

export class Exchange implements Dispatcher.DispatchHandler {
  readonly #onReply: (reply: Reply) => void;
  /** null once it was asked. */
  #sendAgain: ((error: Error) => boolean) | null;
  readonly #timer: NodeJS.Timeout;
  #bodyTimer: NodeJS.Timeout | undefined;
  #controller: Dispatcher.DispatchController | null = null;
  #head: Head | null = null;
  /** The beginning of the body, unless it is ignored. */
  readonly #chunks: Buffer[] = [];
  #bodyBytes = 0;
  #isReplied = false;
  /** Why it was given up before it had a connection; undici tells only then how to. */
  #givenUp: Error | null = null;

  /**
   * @param onReply   called once, in a microtask of its own
   * @param sendAgain asked at most once, when it has failed before any byte of a response: whether it has begun anew
   */
  constructor(timeoutMs: number, onReply: (reply: Reply) => void, sendAgain: (error: Error) => boolean) {
    this.#onReply = onReply;
    this.#sendAgain = sendAgain;
    this.#timer = setTimeout(() => {
      this.abort(`no answer within ${formatMs(timeoutMs)}`);
    }, timeoutMs);
  }

  /** Ends it now: it fails with this cause, unless a head has arrived, and gives up its connection. */
  abort(cause: string): void {
    const error = new Error(cause);
    this.#sendAgain = null;
    this.#finish(error);
    if (this.#controller === null) this.#givenUp = error;
    else this.#controller.abort(error);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#givenUp !== null) controller.abort(this.#givenUp);
  }

  /** The first byte of a response is there. */
  onResponseStarted(): void {
    this.#sendAgain = null;
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Readonly<Record<string, string | string[] | undefined>>,
  ): void {
    if (status < 200) return; // informational: the response is still to come
    this.#bodyTimer = setTimeout(() => {
      this.abort("the response does not end");
    }, BODY_TIMEOUT_MS);
    const retryAfter = headerOf(headers, "retry-after");
    this.#head = { status, retryAfter, location: headerOf(headers, "location") };
    // It is accepted, whatever becomes of the body.
    if (this.#isAccepted) this.#reply({ kind: "answered", ...this.#head, text: "" });
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#bodyBytes += chunk.length;
    if (!this.#isAccepted) this.#chunks.push(chunk);
    if (this.#bodyBytes <= (this.#isAccepted ? MAX_IGNORED_BYTES : MAX_TEXT_BYTES)) return;
    const error = new Error("the response is too long");
    this.#finish(error);
    controller.abort(error);
  }

  onResponseEnd(): void {
    this.#finish(null);
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    const sendAgain = this.#sendAgain;
    this.#sendAgain = null;
    this.#controller = null;
    if (sendAgain?.(error) === true) return;
    this.#finish(error);
  }

  get #isAccepted(): boolean {
    return this.#head !== null && this.#head.status < 300;
  }

  /** Replies with what is there. A body that breaks off is worth what arrived of it: the status alone decides. */
  #finish(error: Error | null): void {
    clearTimeout(this.#timer);
    clearTimeout(this.#bodyTimer);
    if (this.#head === null) {
      this.#reply({ kind: "failed", cause: describeFailure(error) });
    } else {
      const text = Buffer.concat(this.#chunks).toString("utf8", 0, MAX_TEXT_BYTES);
      this.#reply({ kind: "answered", ...this.#head, text });
    }
  }

  /** In a microtask: undici then knows that the connection is free, if it is, and nobody is called back by his own call. */
  #reply(reply: Reply): void {
    if (this.#isReplied) return;
    this.#isReplied = true;
    queueMicrotask(() => {
      this.#onReply(reply);
    });
  }
}

/** A header that is there once; twice, it says nothing clear. */
function headerOf(
  headers: Readonly<Record<string, string | string[] | undefined>>,
  name: string,
): string | null {
  const value = headers[name];
  return typeof value === "string" ? value : null;
}

/** What went wrong, for a person. Of several addresses that were tried, the first speaks for all. */
export function describeFailure(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return describeFailure(error.errors[0]);
  if (!(error instanceof Error)) return String(error);
  if (error.message !== "") return error.message;
  return "code" in error ? String(error.code) : error.name;
}
