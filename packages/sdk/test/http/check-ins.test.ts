import { EventEmitter } from "node:events";
import { describe, expect, it, vi } from "vitest";
import { type CheckInOptions, checkIns } from "../../src/http/index.js";
import type { Worker } from "../../src/worker.js";
import { Target } from "./bench.js";

const UUID = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}";

describe("check-ins", () => {
  async function open(
    service: CheckInOptions["service"],
    path: string,
    answer?: Parameters<typeof Target.open>[0],
  ) {
    const target = (await Target.open(answer)).ofTest();
    const worker = new EventEmitter();
    const warn = vi.fn();
    const counts = checkIns(worker as Worker, {
      service,
      allow: [target.host],
      logger: { debug() {}, info() {}, warn, error() {} },
      url: ({ task }) => (task === "acme/daily" ? `${target.url}${path}` : undefined),
    });
    const run = { queue: "q", run: "daily@a.b", task: "acme/daily" };
    const paths = () => target.received.map(({ url }) => url);
    return { target, worker, counts, warn, run, paths };
  }

  it.each([
    [
      "healthchecks",
      "key/daily",
      ["/key/daily/start\\?rid=U", "/key/daily\\?rid=U", "/key/daily/fail\\?rid=U"],
    ],
    [
      "cronitor",
      "p/key/daily",
      ["run", "complete", "fail"].map((state) => `/p/key/daily\\?state=${state}&series=U`),
    ],
    [
      "sentry",
      "api/1/cron/daily/key/",
      ["in_progress", "ok", "error"].map(
        (status) => `/api/1/cron/daily/key/\\?status=${status}&check_in_id=U`,
      ),
    ],
  ] as const)(
    "tell %s the start, the success and the failure of a run, in this order",
    async (service, path, urls) => {
      let tries = 0;
      const { worker, counts, run, paths } = await open(service, path, (_, response) => {
        // The start needs a second try, and its end waits for it.
        response.writeHead(tries++ === 0 ? 503 : 200).end();
      });
      worker.emit("started", { ...run, attempt: 1 });
      worker.emit("settled", { ...run, attempt: 1, outcome: "retrying", ms: 1 });
      worker.emit("started", { ...run, attempt: 2 });
      worker.emit("settled", { ...run, attempt: 2, outcome: "succeeded", ms: 1 });
      worker.emit("settled", { ...run, attempt: 1, outcome: "failed", ms: 1 });
      worker.emit("started", { ...run, task: "acme/other", attempt: 1 });
      await vi.waitFor(() => expect(counts).toEqual({ sent: 3, failed: 0 }));
      for (const [i, url] of [urls[0], ...urls].entries())
        expect(paths()[i]).toMatch(new RegExp(`^${url.replace("U", UUID)}$`));
      const ids = paths().map((one) => new RegExp(UUID).exec(String(one))?.[0]);
      expect(new Set(ids).size).toBe(1);
    },
  );

  it("to a dead endpoint are counted and logged without their URL, and a slow one holds nothing", async () => {
    const dead = await open("healthchecks", "s3cret", (_, response) => response.writeHead(500).end());
    dead.worker.emit("started", { ...dead.run, attempt: 1 });
    await vi.waitFor(() => expect(dead.counts).toEqual({ sent: 0, failed: 1 }));
    expect(dead.target.received).toHaveLength(2);
    expect(dead.warn).toHaveBeenCalledWith(
      expect.objectContaining({ host: dead.target.host, state: "start", code: "HTTP_STATUS", failed: 1 }),
      "check-in failed",
    );
    expect(JSON.stringify(dead.warn.mock.calls)).not.toContain("s3cret");
    const hung = await open("cronitor", "p", () => {});
    // The listeners return before anything is sent.
    for (let i = 0; i < 2_000; i++) hung.worker.emit("started", { ...hung.run, run: `r${i}`, attempt: 1 });
    expect(hung.counts).toEqual({ sent: 0, failed: 1_000 });
  });
});
