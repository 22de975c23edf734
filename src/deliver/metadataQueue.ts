/**
 * Metadata for one upstream: best effort, one request at a time, so that it takes one connection beside the lanes'.
 */
import { keptBytes, type UpstreamMemory } from "./memory.ts";

/**
 * A sender sends some tens of requests with metadata in a row; with more than these waiting, the newest is lost, and comes
 * again a minute later.
 */
const MAX_WAITING = 64;

/** How metadata gets to the upstream. */
export interface MetadataAttempts {
  /** Whether metadata goes out now. */
  readonly takesMetadata: boolean;
  /** Makes one attempt; never rejects. @returns whether it was accepted */
  sendMetadata(body: Uint8Array, tenant: string | null): Promise<boolean>;
}

export class MetadataQueue {
  readonly #attempts: MetadataAttempts;
  readonly #memory: Pick<UpstreamMemory, "tryTake" | "release">;
  #waiting = 0;
  /** The end of the request before. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(attempts: MetadataAttempts, memory: Pick<UpstreamMemory, "tryTake" | "release">) {
    this.#attempts = attempts;
    this.#memory = memory;
  }

  /** Sends a body in its turn, unless too much waits. @returns whether it was accepted; never rejects */
  async send(body: Uint8Array, tenant: string | null): Promise<boolean> {
    if (!this.#attempts.takesMetadata || this.#waiting >= MAX_WAITING) return false;
    const bytes = keptBytes(body);
    if (!this.#memory.tryTake(bytes)) return false;
    this.#waiting += 1;
    const accepted = this.#turn.then(
      () => this.#attempts.takesMetadata && this.#attempts.sendMetadata(body, tenant),
    );
    this.#turn = accepted;
    const isAccepted = await accepted;
    this.#waiting -= 1;
    this.#memory.release(bytes);
    return isAccepted;
  }
}
