/** An upstream whose behaviour a test writes down: one act per request, on a real socket. */
import http from "node:http";
import https from "node:https";
import net from "node:net";
import type { AddressInfo, Socket } from "node:net";

export interface ReceivedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: Buffer;
}

/** What the upstream does once it has read a request. */
export type Act = (response: http.ServerResponse, socket: Socket) => void;

export class StubUpstream {
  readonly requests: ReceivedRequest[] = [];
  readonly #server: http.Server;
  readonly #script: Act[];
  readonly #sockets = new Set<Socket>();

  private constructor(script: Act[], tls: https.ServerOptions | null) {
    this.#script = [...script];
    const onRequest: http.RequestListener = (request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        const { method = "", url: path = "", headers } = request;
        this.requests.push({ method, path, headers, body: Buffer.concat(chunks) });
        this.#nextAct()(response, request.socket);
      });
    };
    this.#server = tls === null ? http.createServer(onRequest) : https.createServer(tls, onRequest);
    this.#server.on(tls === null ? "connection" : "secureConnection", (socket: Socket) => {
      this.#sockets.add(socket);
      socket.on("close", () => this.#sockets.delete(socket));
      socket.on("error", () => undefined); // resets are part of the script
    });
    this.#server.on("tlsClientError", () => undefined); // and so are clients that do not trust it
  }

  /** @param script acts in the order of the requests; the last one is for all further requests too */
  static async start(
    script: Act[],
    tls: https.ServerOptions | null = null,
    { host = "127.0.0.1", port = 0 } = {},
  ): Promise<StubUpstream> {
    const stub = new StubUpstream(script, tls);
    await new Promise<void>((resolve) => stub.#server.listen(port, host, resolve));
    return stub;
  }

  /** Serves a connection that was accepted elsewhere. */
  take(socket: Socket): void {
    this.#server.emit("connection", socket);
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get openConnections(): number {
    return this.#sockets.size;
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #nextAct(): Act {
    const act = this.#script.length > 1 ? this.#script.shift() : this.#script[0];
    if (act === undefined) throw new Error("a stub upstream needs a script");
    return act;
  }
}

/** An upstream below HTTP: a test writes down what it does with each connection. */
export class StubConnections {
  readonly #server: net.Server;
  readonly #sockets = new Set<Socket>();

  private constructor(script: readonly ((socket: Socket) => void)[]) {
    const rest = [...script];
    this.#server = net.createServer((socket) => {
      this.#sockets.add(socket);
      socket.on("close", () => this.#sockets.delete(socket));
      socket.on("error", () => undefined); // resets are part of the script
      (rest.length > 1 ? rest.shift() : rest[0])?.(socket);
    });
  }

  /** @param script in the order of the connections; the last one is for all further connections too */
  static async start(script: readonly ((socket: Socket) => void)[]): Promise<StubConnections> {
    const stub = new StubConnections(script);
    await new Promise<void>((resolve) => stub.#server.listen(0, "127.0.0.1", resolve));
    return stub;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }
}

export function answer(status: number, body = "", headers: http.OutgoingHttpHeaders = {}): Act {
  return (response) => {
    response.writeHead(status, headers).end(body);
  };
}

/** Reads the request and says nothing. */
export const blackHole: Act = () => undefined;

/** Writes bytes that need not be HTTP and leaves the connection open. */
export function raw(text: string): Act {
  return (_response, socket) => {
    socket.write(text);
  };
}

/** Writes bytes, then ends the connection in order. */
export function rawThenEnd(text: string): Act {
  return (_response, socket) => {
    socket.end(text);
  };
}

/** Writes bytes, then resets the connection (RST) once they have had the time to be read. */
export function rawThenReset(text: string): Act {
  return (_response, socket) => {
    socket.write(text, () => setImmediate(() => socket.resetAndDestroy()));
  };
}

export const reset: Act = (_response, socket) => {
  socket.resetAndDestroy();
};

/** Sends a head and then a body without an end, as fast as it is taken. */
export function endless(status: number): Act {
  return (response) => {
    const chunk = Buffer.alloc(4096, "x");
    const more = (): void => {
      while (response.write(chunk));
    };
    response.writeHead(status);
    response.on("drain", more);
    more();
  };
}

/** Answers that the test gives when it wants to. */
export class HeldAnswers {
  readonly #held: http.ServerResponse[] = [];
  readonly act: Act = (response) => {
    this.#held.push(response);
  };

  get count(): number {
    return this.#held.length;
  }

  answerAll(status: number): void {
    for (const response of this.#held.splice(0)) response.writeHead(status).end();
  }
}

/** A port on which nobody listens. */
export async function closedPort(): Promise<number> {
  const server = net.createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
