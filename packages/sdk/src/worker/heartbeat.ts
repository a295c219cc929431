import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { bullVersion, type Logger, redisError, type Store, VERSION, type WorkerInfo } from "@carillon/store";
import type { ActiveJobs } from "./active.js";

/** A worker is removed from the list if its last beat is further from now than this, in ms. */
const FORGET_AFTER = 3_600_000;

/** Leaving the list of workers must not hold up a stop for longer than this, in ms. */
const LEAVE_WITHIN = 3_000;

/** Announces regularly that this worker is alive, and which runs it has under way: one write a beat. */
export class Heartbeat {
  readonly #store: Store;
  readonly #logger: Logger;
  readonly #active: ActiveJobs;
  readonly #about: Pick<WorkerInfo, "id" | "host" | "pid" | "queues" | "types" | "versions" | "every">;
  #timer: NodeJS.Timeout | undefined;
  #started: number | undefined;
  #stopping = false;
  #beats = 0;
  #beating: Promise<void> | undefined;
  #failing = false;

  constructor(
    parts: { store: Store; logger: Logger; active: ActiveJobs },
    about: Pick<WorkerInfo, "queues" | "types" | "every">,
  ) {
    this.#store = parts.store;
    this.#logger = parts.logger;
    this.#active = parts.active;
    const host = hostname();
    this.#about = {
      ...about,
      id: `${host}-${process.pid}-${randomBytes(2).toString("hex")}`,
      host,
      pid: process.pid,
      versions: { carillon: VERSION, bullmq: bullVersion(), node: process.versions.node },
    };
  }

  get id(): string {
    return this.#about.id;
  }

  /** Resolves after the first beat, also if that failed. */
  async start(): Promise<void> {
    await this.#beat();
    if (!this.#stopping) this.#timer = setInterval(() => void this.#beat(), this.#about.every).unref();
  }

  /** Reports that the worker takes no more jobs. It beats on while it waits for those under way. */
  stopping(): void {
    this.#stopping = true;
    if (this.#timer) void this.#beat();
  }

  /** Called last, so that the worker is listed until its work is done. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    // Undefined: it was stopped before its first beat.
    const begun = this.#beating ?? this.#started;
    if (begun === undefined || !this.#store.ready) return;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, LEAVE_WITHIN);
    });
    await Promise.race([this.#leave(), late]);
    clearTimeout(timer);
  }

  async #leave(): Promise<void> {
    // A beat under way would put the worker back on the list.
    await this.#beating;
    await this.#store.registry.removeWorker(this.id).catch(() => {});
  }

  /** Never rejects: logs the first of several failures, and the next beat tries again. */
  #beat(): Promise<void> {
    // One at a time, so that beats do not pile up while Redis hangs.
    this.#beating ??= this.#beatOnce().finally(() => {
      this.#beating = undefined;
    });
    return this.#beating;
  }

  async #beatOnce(): Promise<void> {
    try {
      const now = await this.#store.serverTime();
      this.#started ??= now;
      await this.#store.registry.beatWorker(this.#info(now, this.#started));
      this.#beats += 1;
      if (this.#beats % 60 === 1) await this.#forgetTheGone(now);
      this.#failing = false;
    } catch (error) {
      const { code, message } = redisError(error);
      if (!this.#failing) this.#logger.warn({ code, error: message }, "the heartbeat failed");
      this.#failing = true;
    }
  }

  #info(now: number, started: number): WorkerInfo {
    const { count, runs } = this.#active.underWay();
    return { ...this.#about, started, beat: now, stopping: this.#stopping, running: count, runs };
  }

  async #forgetTheGone(now: number): Promise<void> {
    const { registry } = this.#store;
    for (const { id, beat } of await registry.workers()) {
      // A beat in the future means that the server's clock was ahead, and that the worker has not beaten since.
      if (Math.abs(now - beat) > FORGET_AFTER) await registry.removeWorker(id);
    }
  }
}
