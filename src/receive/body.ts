/** Reading a request's body within bounds of size and time. */
import type { IncomingMessage } from "node:http";

export type BodyResult =
  /** Whole, in the pieces that it came in. */
  | { readonly kind: "body"; readonly pieces: readonly Buffer[]; readonly bytes: number }
  /** Above the limit; `bytes` is the declared length, or what had come when it passed the limit (`declared` false). */
  | { readonly kind: "too_large"; readonly bytes: number; readonly declared: boolean }
  /** The client left, or was too slow and its connection was closed: there is nobody to answer. */
  | { readonly kind: "gone" };

/** Chunks below this are copied together: each kept by itself costs some hundred bytes besides. */
const SMALL_CHUNK_BYTES = 4 * 1024;
const BLOCK_BYTES = 64 * 1024;

/** How long a body that is declared too long is read on before it is answered. */
const LINGER_MS = 1_000;

/**
 * Reads a body.
 *
 * What is above the limit is not kept but read on and thrown away, up to as much again, so that the sender is done
 * writing and sees the answer instead of a reset.
 *
 * @param timeoutMs from now to the end of the body; then the connection is closed without a status, since a 408 would
 *                  make Prometheus drop what it could send again
 */
export function readBody(request: IncomingMessage, maxBytes: number, timeoutMs: number): Promise<BodyResult> {
  return new Promise((resolve) => {
    const declared = Number(request.headers["content-length"] ?? Number.NaN);
    let pieces = new Pieces();
    let received = 0;
    const tooLarge = (): boolean => declared > maxBytes || received > maxBytes;
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
    const settleTooLarge = (): void => {
      const isDeclared = declared > maxBytes;
      settle({ kind: "too_large", bytes: isDeclared ? declared : received, declared: isDeclared });
    };
    // A client may wait for the answer before it sends what it declared.
    const linger = declared > maxBytes ? setTimeout(settleTooLarge, LINGER_MS) : undefined;
    const onData = (chunk: Buffer): void => {
      received += chunk.length;
      if (!tooLarge()) {
        pieces.add(chunk);
        return;
      }
      pieces = new Pieces();
      if (received > 2 * maxBytes) settleTooLarge();
    };
    const onEnd = (): void => {
      if (tooLarge()) settleTooLarge();
      else settle({ kind: "body", pieces: pieces.all(), bytes: received });
    };
    // After an error or a close that no end came before, nobody waits for an answer.
    const onGone = (): void => {
      settle({ kind: "gone" });
    };
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
