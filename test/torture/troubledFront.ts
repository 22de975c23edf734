/** Stands before a healthy receiver and makes it look refusing, silent or slow: bytes go through it, or do not. */
import { connect, createServer, type Server, type Socket } from "node:net";
import { freePort } from "../peers/program.ts";

export const TROUBLES = ["refusing", "silent", "slow"] as const;
export type Trouble = (typeof TROUBLES)[number];

/** How long an answer of a slow receiver takes. */
const SLOW_MS = 900;

export class TroubledFront {
  readonly #target: URL;
  readonly #port: number;
  readonly #sockets = new Set<Socket>();
  #server: Server | null = null;
  #state: Trouble | "well" = "well";

  private constructor(target: URL, port: number) {
    this.#target = target;
    this.#port = port;
  }

  /** @param url write address of the receiver behind it */
  static async start(url: string): Promise<TroubledFront> {
    const front = new TroubledFront(new URL(url), await freePort());
    await front.become("well");
    return front;
  }

  /** The write address that it has. */
  get url(): string {
    return `http://127.0.0.1:${this.#port}${this.#target.pathname}`;
  }

  async become(state: Trouble | "well"): Promise<void> {
    const before = this.#state;
    this.#state = state;
    if (state === "refusing") {
      await this.close();
      return;
    }
    // What nobody read does not begin to be read in the middle.
    if (state === "silent" || before === "silent") this.#breakConnections();
    this.#server ??= await this.#listen();
  }

  async close(): Promise<void> {
    const server = this.#server;
    this.#server = null;
    if (server === null) return;
    const closed = new Promise((resolve) => server.close(resolve));
    this.#breakConnections();
    await closed;
  }

  #breakConnections(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async #listen(): Promise<Server> {
    const server = createServer((client) => {
      this.#carry(client);
    });
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(this.#port, "127.0.0.1", resolve);
    });
    return server;
  }

  #carry(client: Socket): void {
    this.#watch(client);
    if (this.#state === "silent") return; // nobody reads it
    const receiver = connect(Number(this.#target.port), this.#target.hostname);
    this.#watch(receiver);
    client.pipe(receiver);
    receiver.on("data", (answer: Buffer) => {
      if (this.#state === "slow") setTimeout(() => client.write(answer), SLOW_MS);
      else client.write(answer);
    });
    client.once("close", () => receiver.destroy());
    receiver.once("close", () => client.destroy());
  }

  #watch(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on("error", () => undefined); // a reset: "close" follows
    socket.once("close", () => this.#sockets.delete(socket));
  }
}
