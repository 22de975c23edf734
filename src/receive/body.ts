/** Reading a request's body within bounds of size and time. */
import type { IncomingMessage } from "node:http";

export type BodyResult =
  /** Whole, in the pieces that it came in. */
  | { readonly kind: "body"; readonly pieces: readonly Buffer[]; readonly bytes: number }
  /** Above the limit; `bytes` is the declared length, or what had come when it passed the limit (`declared` false). */
  | { readonly kind: "too_large"; readonly bytes: number; readonly declared: boolean }
  /** There is no memory for it. */
  | { readonly kind: "no_memory" }
  /** The client left, or was too slow and its connection was closed: there is nobody to answer. */
  | { readonly kind: "gone" };

/** Chunks below this are copied together: each kept by itself costs some hundred bytes besides. */
const SMALL_CHUNK_BYTES = 4 * 1024;
const BLOCK_BYTES = 64 * 1024;

/** How long a body that is declared too long, or that there is no memory for, is read on before it is answered. */
const LINGER_MS = 1_000;

/** The memory for bodies: all that is taken is released. */
export interface BodyMemory {
  /** Takes so many bytes; false, and nothing, when there are not so many. */
  tryTake(bytes: number): boolean;
  release(bytes: number): void;
}

/** How long a request says that its body is, in bytes; NaN if it does not say it. */
export function declaredBytes({ headers }: IncomingMessage): number {
  return Number(headers["content-length"] ?? Number.NaN);
}

/** What one body has of it. */
export class BodyClaim {
  readonly #memory: BodyMemory;
  #bytes = 0;

  constructor(memory: BodyMemory) {
    this.#memory = memory;
  }

  tryTake(bytes: number): boolean {
    if (!this.#memory.tryTake(bytes)) return false;
    this.#bytes += bytes;
    return true;
  }

  /** Releases all of it. */
  release(): void {
    this.#memory.release(this.#bytes);
    this.#bytes = 0;
  }
}

/**
 * Reads a body.
 *
 * What is above the limit, or finds no memory, is not kept but read on and thrown away for a while, so that the sender is
 * done writing and sees the answer instead of a reset.
 *
 * @param claim     takes the declared length before anything is read, or else what has come; released by the caller
 * @param timeoutMs from now to the end of the body; then the connection is closed without a status, since a 408 would
 *                  make Prometheus drop what it could send again
 */
export function readBody(
  request: IncomingMessage,
  maxBytes: number,
  timeoutMs: number,
  claim: BodyClaim,
): Promise<BodyResult> {
  return new Promise((resolve) => {
    const declared = declaredBytes(request);
    let pieces = new Pieces();
    let received = 0;
    let refusal: "too_large" | "no_memory" | null = null;
    let linger: NodeJS.Timeout | undefined;
    const timer = setTimeout(() => {
      request.destroy();
    }, timeoutMs);
    const settle = (result: BodyResult): void => {
      clearTimeout(timer);
      clearTimeout(linger);
      // The request lives until it is answered, and its listeners would keep the body as long.
      request.off("data", onData).off("end", onEnd).off("error", onGone).off("close", onGone);
      resolve(result);
    };
    const isDeclared = !Number.isNaN(declared);
    const settleRefused = (): void => {
      if (refusal === "no_memory") settle({ kind: "no_memory" });
      else settle({ kind: "too_large", bytes: isDeclared ? declared : received, declared: isDeclared });
    };
    const refuse = (why: "too_large" | "no_memory"): void => {
      refusal = why;
      pieces = new Pieces();
      claim.release();
      // A client may wait for the answer before it sends what it declared.
      if (isDeclared || why === "no_memory") linger = setTimeout(settleRefused, LINGER_MS);
    };
    const onData = (chunk: Buffer): void => {
      received += chunk.length;
      if (refusal === null && received > maxBytes) refuse("too_large");
      if (refusal === null && !isDeclared && !claim.tryTake(chunk.length)) refuse("no_memory");
      if (refusal === null) pieces.add(chunk);
      else if (received > 2 * maxBytes) settleRefused();
    };
    const onEnd = (): void => {
      if (refusal !== null) settleRefused();
      else settle({ kind: "body", pieces: pieces.all(), bytes: received });
    };
    // After an error or a close that no end came before, nobody waits for an answer.
    const onGone = (): void => {
      settle({ kind: "gone" });
    };
    if (declared > maxBytes) refuse("too_large");
    else if (!claim.tryTake(isDeclared ? declared : 0)) refuse("no_memory");
    request.on("data", onData).on("end", onEnd).on("error", onGone).on("close", onGone);
  });
}

/** What has come of a body: large chunks as they are, small ones copied together. */
class Pieces {
  readonly #pieces: Buffer[] = [];
  #block = Buffer.alloc(0);
  #filled = 0;

  add(chunk: Buffer): void {
    if (chunk.length >= SMALL_CHUNK_BYTES) {
      this.#closeBlock();
      this.#pieces.push(chunk);
      return;
    }
    if (this.#filled + chunk.length > this.#block.length) {
      this.#closeBlock();
      // The first block of a body is small, since nearly all bodies that come in small chunks are.
      this.#block = Buffer.allocUnsafe(this.#pieces.length === 0 ? SMALL_CHUNK_BYTES : BLOCK_BYTES);
    }
    chunk.copy(this.#block, this.#filled);
    this.#filled += chunk.length;
  }

  all(): readonly Buffer[] {
    this.#closeBlock();
    return this.#pieces;
  }

  #closeBlock(): void {
    if (this.#filled > 0) this.#pieces.push(this.#block.subarray(0, this.#filled));
    this.#block = Buffer.alloc(0);
    this.#filled = 0;
  }
}
