import { readdirSync } from "node:fs";
import { createServer, type RequestListener, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";

const ASSETS = readdirSync(new URL("../../dist/ui/assets/", import.meta.url));
const renamed = (name: string) => name.replace(/(\.\w+)$/, "-next$1");

/**
 * An address at which the console can stop, start again, and be replaced by a release with other names of its files. Browsers do not
 * cache its answers, which would hide that a file cannot be fetched.
 */
export class Front {
  readonly #server: Server;
  readonly #target: string;
  #port = 0;
  #released = false;

  constructor(target: string) {
    this.#target = target;
    this.#server = createServer(this.#forward);
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  async start(): Promise<void> {
    await new Promise<void>((done) => void this.#server.listen(this.#port, "127.0.0.1", done));
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  async stop(): Promise<void> {
    const closed = new Promise((done) => this.#server.close(done));
    this.#server.closeAllConnections();
    await closed;
  }

  /** From now on the files have other names, and the old ones are gone. */
  release(): void {
    this.#released = true;
  }

  readonly #forward: RequestListener = (req, res) => {
    const asked = /^\/assets\/(.*)/.exec(req.url ?? "")?.[1];
    if (this.#released && asked !== undefined && !asked.includes("-next.")) {
      res.writeHead(404).end();
      return;
    }
    const { port } = new URL(this.#target);
    const path = req.url?.replace("-next.", ".");
    const sent = request({
      host: "127.0.0.1",
      port,
      method: req.method,
      path,
      headers: { ...req.headers, "accept-encoding": "identity" },
    });
    sent.on("response", (answer) => {
      answer.headers["cache-control"] = "no-store";
      const isText = /html|javascript/.test(String(answer.headers["content-type"]));
      if (!this.#released || !isText) {
        res.writeHead(answer.statusCode ?? 500, answer.headers);
        answer.pipe(res);
        return;
      }
      const chunks: Buffer[] = [];
      answer.on("data", (chunk: Buffer) => chunks.push(chunk));
      answer.on("end", () => {
        const text = ASSETS.reduce(
          (text, name) => text.replaceAll(name, renamed(name)),
          Buffer.concat(chunks).toString(),
        );
        const { "content-length": _, ...headers } = answer.headers;
        res.writeHead(answer.statusCode ?? 500, headers).end(text);
      });
    });
    sent.on("error", () => res.destroy());
    res.on("close", () => sent.destroy());
    req.pipe(sent);
  };
}
