import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

/** A real connection to a real server, with an accident on order: the server does its work, and its answer is lost. */
export class LossyProxy {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #countdown = Number.POSITIVE_INFINITY;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async to(target: { host: string; port: number }): Promise<LossyProxy> {
    const server = createServer();
    const proxy = new LossyProxy(server);
    server.on("connection", (near) => proxy.#join(near, connect(target.port, target.host)));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return proxy;
  }

  get url(): string {
    return `redis://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Loses the `n`th answer from now (0: the very next), and cuts the connection there. */
  lose(n: number): void {
    this.#countdown = n;
  }

  /** Whether the answer that was to be lost is still to come; calls it off. */
  calm(): boolean {
    const pending = this.#countdown !== Number.POSITIVE_INFINITY;
    this.#countdown = Number.POSITIVE_INFINITY;
    return pending;
  }

  #join(near: Socket, far: Socket): void {
    const end = () => {
      near.destroy();
      far.destroy();
    };
    for (const socket of [near, far]) {
      this.#sockets.add(socket);
      socket.setNoDelay(true);
      socket.on("error", end);
      socket.on("close", () => {
        this.#sockets.delete(socket);
        end();
      });
    }
    near.on("data", (chunk) => far.write(chunk));
    far.on("data", (chunk) => {
      if (this.#countdown === 0) {
        this.#countdown = Number.POSITIVE_INFINITY;
        end();
        return;
      }
      this.#countdown -= 1;
      near.write(chunk);
    });
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, "close");
  }
}
