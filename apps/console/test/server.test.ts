import { once } from "node:events";
import type { Server } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { eventually } from "@carillon/testing";
import { Hono } from "hono";
import { afterEach, expect, test } from "vitest";
import { jsonBody, readBody } from "../src/api/body.js";
import type { Env } from "../src/context.js";
import { consoleServer, nodeHandler } from "../src/server.js";

let server: Server;
const sockets: Socket[] = [];
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
  server.closeAllConnections();
  server.close();
});

async function serve(limits?: Parameters<typeof consoleServer>[1]): Promise<void> {
  const app = new Hono<Env>();
  app.post("/json", jsonBody, (c) => c.json({}));
  app.post("/login", async (c) => c.json((await readBody(c, 100)).length));
  app.get("/", (c) => c.json({}));
  app.onError((error, c) => c.text(error.message, 400));
  server = consoleServer(nodeHandler(app.fetch), limits);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
}

/** Sends raw text, and returns the answer once the server has closed the connection. */
async function say(text: string): Promise<string> {
  const socket = open();
  let heard = "";
  socket.on("data", (chunk: Buffer) => {
    heard += chunk;
  });
  socket.write(text);
  await once(socket, "close");
  return heard;
}

function open(): Socket {
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  socket.on("error", () => {});
  sockets.push(socket);
  return socket;
}

const FORM = "Content-Type: application/x-www-form-urlencoded\r\n";
const JSON_ = "Content-Type: application/json\r\n";

test.each([
  ["a form's body", `POST /login HTTP/1.1\r\nHost: h\r\n${FORM}Content-Length: 9\r\n\r\n`],
  ["a body in chunks", `POST /json HTTP/1.1\r\nHost: h\r\n${JSON_}Transfer-Encoding: chunked\r\n\r\n4\r\n`],
  ["the rest of a body", `POST /json HTTP/1.1\r\nHost: h\r\n${JSON_}Content-Length: 9\r\n\r\n{`],
  ["the rest of the headers", "GET / HTTP/1.1\r\nHost: h\r\n"],
])("a request is ended if %s does not come in time", async (_, sent) => {
  await serve({ requestMs: 50, checkMs: 10 });
  expect(await say(sent)).toMatch(/^HTTP\/1\.1 408 /);
});

test("the server has time limits and a limit of connections", async () => {
  await serve();
  expect(server.requestTimeout).toBe(30_000);
  expect(server.headersTimeout).toBeLessThanOrEqual(server.requestTimeout);
  expect(server.maxConnections).toBe(1_000);
});

test("a connection beyond the limit is closed at once; the others continue", async () => {
  await serve({ connections: 2 });
  const [first] = [open(), open()] as const;
  const count = () => new Promise<number>((resolve) => server.getConnections((_, n) => resolve(n)));
  await eventually(async () => (await count()) === 2);
  expect(await say("GET / HTTP/1.1\r\nHost: h\r\n\r\n")).toBe("");
  first.write("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  const [answer] = (await once(first, "data")) as [Buffer];
  expect(answer.toString()).toMatch(/^HTTP\/1\.1 200 /);
});
