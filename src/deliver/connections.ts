/**
 * The connections to one upstream.
 *
 * An upstream may close a connection that it holds for idle in the moment in which a request goes out over it. Nothing is
 * wrong with it then, nor with the request. Such an end is told apart from others here, and the request can go out again
 * over a connection that has served no other.
 */
import type { Socket } from "node:net";
import { buildConnector, Pool } from "undici";
import type { Dispatcher } from "undici";

/** How the other side's end of a connection shows: in order, by a reset that was read, or by one met while writing. */
const CLOSED_BY_OTHER_SIDE = ["UND_ERR_SOCKET", "ECONNRESET", "EPIPE"];

export class Connections {
  readonly #kept: Pool;
  /** Serve one request each. */
  readonly #fresh: Pool;
  /** By what they ended with. */
  readonly #ended = new WeakMap<Error, Socket>();

  /**
   * @param origin of the upstream's url
   * @param max    how many requests can be under way at a time; further ones wait for a connection
   */
  constructor(origin: string, max: number, options: buildConnector.BuildOptions) {
    const open = buildConnector(options);
    const connect: buildConnector.connector = (target, onConnection) => {
      open(target, (...result) => {
        const [, socket] = result;
        // Before undici's own listener, so that whoever is told of the error finds it here.
        socket?.once("error", (error: Error) => this.#ended.set(error, socket));
        onConnection(...result);
      });
    };
    const pool = { connections: max, pipelining: 1, headersTimeout: 0, bodyTimeout: 0, connect };
    this.#kept = new Pool(origin, pool);
    this.#fresh = new Pool(origin, pool);
  }

  /** Sends a request over a connection that is kept, if one is free. */
  dispatch(request: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void {
    this.#kept.dispatch(request, handler);
  }

  /** Sends a request over a connection of its own. */
  dispatchAlone(request: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void {
    this.#fresh.dispatch({ ...request, reset: true }, handler);
  }

  /**
   * Whether this error, before any byte of a response, means that a connection which had served other requests was closed
   * by the upstream.
   */
  isStale(error: Error): boolean {
    const socket = this.#ended.get(error);
    const isClosed = "code" in error && CLOSED_BY_OTHER_SIDE.includes(String(error.code));
    return isClosed && socket !== undefined && socket.bytesRead > 0;
  }

  /** Closes each once nothing is under way over it, if they are not closed yet. Nothing may be dispatched any more. */
  async close(): Promise<void> {
    const open = [this.#kept, this.#fresh].filter(({ destroyed }) => !destroyed);
    await Promise.all(open.map((pool) => pool.close()));
  }

  /** Closes all. */
  async destroy(): Promise<void> {
    await Promise.all([this.#kept.destroy(), this.#fresh.destroy()]);
  }
}
