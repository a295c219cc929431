import { createHash } from "node:crypto";
import { assertOptions, FAILURES } from "@carillon/core/internal";
import { defaultLogger, type Logger } from "@carillon/store";
import type { RunEvent } from "../worker/options.js";
import type { Worker } from "../worker.js";
import { HttpError } from "./errors.js";
import { createGuard, type GuardOptions } from "./guard.js";
import { Receivers } from "./receivers.js";
import { sendSigned } from "./send.js";

/** The address of a check-in. `id`: a UUID of the run, which connects its start and its end. */
const SERVICES = {
  healthchecks: (url: URL, state: State, id: string) => {
    url.pathname += { start: "/start", success: "", failure: "/fail" }[state];
    url.searchParams.set("rid", id);
  },
  cronitor: (url: URL, state: State, id: string) => {
    url.searchParams.set("state", { start: "run", success: "complete", failure: "fail" }[state]);
    url.searchParams.set("series", id);
  },
  sentry: (url: URL, state: State, id: string) => {
    url.searchParams.set("status", { start: "in_progress", success: "ok", failure: "error" }[state]);
    url.searchParams.set("check_in_id", id);
  },
} as const;

type State = "start" | "success" | "failure";

export interface CheckInOptions extends GuardOptions {
  service: keyof typeof SERVICES;
  /** The ping URL of a run's task, a secret; undefined: none. `task` is `owner/id`. */
  url: (run: RunEvent) => string | undefined;
  /** Default: pino, as JSON lines on stdout. */
  logger?: Logger | undefined;
}

/** Numbers of check-ins since the start. */
export interface CheckIns {
  readonly sent: number;
  readonly failed: number;
}

/** Longest wait for an answer, in ms. */
const TIMEOUT = 10_000;
/** Check-ins that may wait for an answer; further ones count as failed. */
const MOST = 1_000;

/**
 * Tells Healthchecks.io, Cronitor or Sentry Crons when runs of this worker start, succeed and fail: once a run, not once an attempt. Runs never wait
 * for it: a check-in is sent beside them, tried twice, logged and counted if it fails.
 *
 * @example
 * const key = process.env.HEALTHCHECKS_PING_KEY;
 * checkIns(worker, {
 *   service: "healthchecks",
 *   url: ({ task }) => `https://hc-ping.com/${key}/${task.replace(/[^a-z0-9-]/g, "-")}?create=1`,
 * });
 * @throws `INVALID_OPTION`
 */
export function checkIns(worker: Worker, options: CheckInOptions): CheckIns {
  assertOptions(options, ["service", "url", "logger", "allow", "resolve"]);
  const { service, url: urlOf, logger = defaultLogger() } = options;
  const guard = createGuard(options);
  const receivers = new Receivers();
  const counts = { sent: 0, failed: 0 };
  /** The last check-in of each run: its end must not overtake its start. */
  const last = new Map<string, Promise<void>>();

  const send = async (run: RunEvent, state: State, before: Promise<void> | undefined) => {
    await before;
    let host = "?";
    try {
      const given = urlOf(run);
      if (given === undefined) return;
      const url = new URL(given);
      host = url.host;
      SERVICES[service](url, state, uuidOf(run.run));
      const ask = () => receivers.ask(host, () => ping(url));
      await ask().catch(ask);
      counts.sent += 1;
    } catch (error) {
      counts.failed += 1;
      const { code = "INVALID_OPTION" } = error as { code?: string };
      // Neither the URL nor a message that may hold it.
      logger.warn({ service, host, run: run.run, task: run.task, state, code, ...counts }, "check-in failed");
    }
  };
  const ping = async (url: URL) => {
    const { status } = await sendSigned(
      { method: "GET", url: url.href, headers: {}, timeout: TIMEOUT },
      guard,
    );
    if (status >= 300) throw new HttpError("HTTP_STATUS", `${url.host} answered ${status}.`, status);
  };
  const tell = (run: RunEvent, state: State) => {
    if (last.size >= MOST && !last.has(run.run)) {
      counts.failed += 1;
      return;
    }
    const sent = send(run, state, last.get(run.run)).then(() => {
      if (last.get(run.run) === sent) last.delete(run.run);
    });
    last.set(run.run, sent);
  };
  worker.on("started", ({ attempt, ...run }) => {
    if (attempt === 1) tell(run, "start");
  });
  worker.on("settled", ({ outcome, queue, run, task }) => {
    if (outcome === "retrying") return;
    const failed = outcome === "cancelled" || FAILURES.has(outcome);
    tell({ queue, run, task }, failed ? "failure" : "success");
  });
  worker.on("crashed", ({ queue, run, task }) => tell({ queue, run, task }, "failure"));
  return counts;
}

function uuidOf(run: string): string {
  const hex = createHash("sha256").update(run).digest("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
