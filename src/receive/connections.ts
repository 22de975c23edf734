/**
 * The connections of a listener, which of them have a request under way, and which have come of age.
 *
 * Node's own notion of an idle connection leaves out those that have sent nothing or half a request head: they would hold
 * up the end of a process for as long as they like.
 *
 * One that has come of age is to end with its next answer. If it is idle then, nobody may come for that answer: it is closed
 * at once, as long as nothing of a request has arrived. What arrived while the event loop was busy is read first: a request that
 * nobody has read would be reset.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { setImmediate } from "node:timers";

/** A part of the age, up or down by chance: connections that were opened together are not to end together. */
const AGE_SPREAD = 0.1;
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export interface ConnectionTools {
  readonly now: () => number;
  /** 0 <= random() < 1 */
  readonly random: () => number;
}

interface Connection {
  requestsUnderWay: number;
  /** What had been read when the last request ended. */
  bytesOfRequests: number;
  /** Infinity for never. */
  readonly oldAt: number;
}

export class Connections {
  readonly #maxAgeMs: number;
  readonly #tools: ConnectionTools;
  readonly #connections = new Map<Socket, Connection>();

  /** @param maxAgeMs 0 for none */
  constructor(maxAgeMs: number, tools: ConnectionTools) {
    this.#maxAgeMs = maxAgeMs;
    this.#tools = tools;
  }

  add(socket: Socket): void {
    const ageMs = this.#maxAgeMs === 0 ? Infinity : this.#spread(this.#maxAgeMs);
    const connection = { requestsUnderWay: 0, bytesOfRequests: 0, oldAt: this.#tools.now() + ageMs };
    this.#connections.set(socket, connection);
    const closeIfIdle = (): void => {
      const isIdle = connection.requestsUnderWay === 0;
      if (isIdle && socket.bytesRead === connection.bytesOfRequests) socket.destroy();
    };
    const timer =
      ageMs === Infinity
        ? undefined
        : setTimeout(() => {
            setImmediate(closeIfIdle);
          }, ageMs).unref();
    socket.once("close", () => {
      clearTimeout(timer);
      this.#connections.delete(socket);
    });
  }

  /** Whether it is to end with its next answer. */
  isOld(socket: Socket): boolean {
    return (this.#connections.get(socket)?.oldAt ?? Infinity) <= this.#tools.now();
  }

  /** Counts a request as under way until its response is out or given up. */
  track({ socket }: IncomingMessage, response: ServerResponse): void {
    this.#change(socket, 1);
    response.once("close", () => {
      this.#change(socket, -1);
    });
  }

  isUsed(socket: Socket): boolean {
    return (this.#connections.get(socket)?.requestsUnderWay ?? 0) > 0;
  }

  /** Whether a request has a body that has not come to its end. */
  isSending({ complete, headers }: IncomingMessage): boolean {
    const hasBody = headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
    return hasBody && !complete;
  }

  /** Closes the connections that have no request under way. */
  closeUnused(): void {
    for (const [socket, { requestsUnderWay }] of this.#connections) {
      if (requestsUnderWay === 0) socket.destroy();
    }
  }

  #change(socket: Socket, by: 1 | -1): void {
    const connection = this.#connections.get(socket);
    if (connection === undefined) return;
    connection.requestsUnderWay += by;
    if (by === -1) connection.bytesOfRequests = socket.bytesRead;
  }

  #spread(ageMs: number): number {
    const spread = ageMs * (1 + AGE_SPREAD * (2 * this.#tools.random() - 1));
    return Math.min(spread, LONGEST_TIMER_MS);
  }
}
