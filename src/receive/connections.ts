/**
 * The connections of a listener, and which of them have a request under way.
 *
 * Node's own notion of an idle connection leaves out those that have sent nothing or half a request head: they would hold
 * up the end of a process for as long as they like.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";

export class Connections {
  /** Requests under way by connection. */
  readonly #requests = new Map<Socket, number>();

  add(socket: Socket): void {
    this.#requests.set(socket, 0);
    socket.once("close", () => {
      this.#requests.delete(socket);
    });
  }

  /** Counts a request as under way until its response is out or given up. */
  track({ socket }: IncomingMessage, response: ServerResponse): void {
    this.#change(socket, 1);
    response.once("close", () => {
      this.#change(socket, -1);
    });
  }

  isUsed(socket: Socket): boolean {
    return (this.#requests.get(socket) ?? 0) > 0;
  }

  /** Whether a request has a body that has not come to its end. */
  isSending({ complete, headers }: IncomingMessage): boolean {
    const hasBody = headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
    return hasBody && !complete;
  }

  /** Closes the connections that have no request under way. */
  closeUnused(): void {
    for (const [socket, requests] of this.#requests) if (requests === 0) socket.destroy();
  }

  #change(socket: Socket, by: 1 | -1): void {
    const requests = this.#requests.get(socket);
    if (requests !== undefined) this.#requests.set(socket, requests + by);
  }
}
