import type { Server } from "node:http";
import { afterEach, beforeEach, expect, it } from "vitest";
import { boundPort, type Endpoints, serve } from "../src/http.js";

let server: Server;
let endpoints: Endpoints;
beforeEach(async () => {
  endpoints = {
    readiness: () => ({ ready: true }),
    metrics: async () => ({ type: "text/plain; version=0.0.4", text: "up 1\n" }),
  };
  const asked: Endpoints = { readiness: () => endpoints.readiness(), metrics: () => endpoints.metrics() };
  server = await serve(asked, "127.0.0.1", 0);
});
afterEach(() => {
  server.close();
});

async function ask(path: string, method = "GET") {
  const answer = await fetch(`http://127.0.0.1:${boundPort(server)}${path}`, { method });
  const [type, kept, allow] = ["content-type", "cache-control", "allow"].map((name) =>
    answer.headers.get(name),
  );
  return { status: answer.status, type, kept, allow, text: await answer.text() };
}
const json = { type: "application/json", kept: "no-store", allow: null };

it("/health and /ready report life and readiness", async () => {
  expect(await ask("/health")).toEqual({ ...json, status: 200, text: '{"status":"ok"}' });
  expect(await ask("/ready?verbose")).toEqual({ ...json, status: 200, text: '{"ready":true}' });
  const stopping = { ready: false, reason: "STOPPING", why: "stopping" } as const;
  endpoints.readiness = () => stopping;
  expect(await ask("/ready")).toEqual({ ...json, status: 503, text: JSON.stringify(stopping) });
});

it("/metrics returns the metrics, or the error that they failed with", async () => {
  expect(await ask("/metrics")).toMatchObject({
    status: 200,
    type: "text/plain; version=0.0.4",
    text: "up 1\n",
  });
  endpoints.metrics = () => Promise.reject(new Error("no numbers"));
  expect(await ask("/metrics")).toEqual({ ...json, status: 500, text: '{"error":"no numbers"}' });
});

it("other paths and methods are answered with the list of them", async () => {
  const paths = '{"error":"There are /health, /ready and /metrics."}';
  for (const path of ["/", "/metrics/", "/healthy"]) {
    expect(await ask(path)).toEqual({ ...json, status: 404, text: paths });
  }
  const post = await ask("/health", "POST");
  expect(post).toEqual({ ...json, status: 405, allow: "GET, HEAD", text: '{"error":"Only GET."}' });
  expect(await ask("/health", "HEAD")).toMatchObject({ status: 200, text: "" });
});

it("the server listens on the given address, and refuses a port that is taken", async () => {
  expect(server.address()).toMatchObject({ address: "127.0.0.1" });
  const second = serve(endpoints, "127.0.0.1", boundPort(server));
  await expect(second).rejects.toMatchObject({ code: "EADDRINUSE", syscall: "listen" });
});
