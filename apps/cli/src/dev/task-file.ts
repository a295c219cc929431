import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, type FSWatcher, readdirSync, watch } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { CarillonError } from "@carillon/sdk";
import { typescriptLoader } from "../typescript.js";
import type { Events } from "./events.js";

const WORKER = fileURLToPath(new URL("./worker.js", import.meta.url));
const CODE = /\.[cm]?[jt]sx?$/;
/** Time in ms for which files must stay unchanged before the worker starts again: editors save in several steps. */
const QUIET_MS = 100;
/** Time in ms that the worker may take to stop. */
const STOP_MS = 10_000;

/** A module of task types, and the worker that runs them, again each time that code in the module's folder changes. */
export class TaskFile {
  /** From the working directory. */
  readonly path: string;
  readonly #file: string;
  readonly #flags: readonly string[];

  /** @throws `INVALID_OPTION` if there is no such file, or this Node.js cannot run it */
  constructor(path: string) {
    this.#file = resolve(path);
    this.path = relative(".", this.#file);
    if (!existsSync(this.#file))
      throw new CarillonError("INVALID_OPTION", `there is no file ${path}.`, { field: "file" });
    const loader = typescriptLoader(this.#file, "file");
    this.#flags = loader ? ["--import", loader] : [];
  }

  /** Starts the worker. Returns the function that stops it. */
  work(env: NodeJS.ProcessEnv, events: Events): () => Promise<void> {
    let stopping = false;
    let timer: NodeJS.Timeout | undefined;
    let watchers: FSWatcher[] = [];
    let worker = this.#start(env, events);
    let turn = Promise.resolve();
    const again = async () => {
      if (stopping) return;
      events.say("reload", "", this.path);
      await stop(worker);
      worker = this.#start(env, events);
      watchAll(); // there may be new folders
    };
    const watchAll = () => {
      for (const watcher of watchers) watcher.close();
      watchers = folders(dirname(this.#file)).map((folder) =>
        watch(folder, (_event, name) => {
          if (!CODE.test(name ?? "")) return;
          clearTimeout(timer);
          timer = setTimeout(() => {
            turn = turn.then(again);
          }, QUIET_MS);
        }),
      );
    };
    watchAll();
    return async () => {
      stopping = true;
      clearTimeout(timer);
      await turn;
      for (const watcher of watchers) watcher.close();
      await stop(worker);
    };
  }

  #start(env: NodeJS.ProcessEnv, events: Events): ChildProcess {
    // The worker ends when its input does, which happens however this process dies.
    const worker = spawn(process.execPath, [...this.#flags, WORKER, this.#file], {
      env,
      stdio: ["pipe", "inherit", "inherit"],
    });
    worker.once("exit", (code) => {
      if (code !== 0)
        events.say("waiting", "", `for a change in ${relative(".", dirname(this.#file)) || "."}`);
    });
    return worker;
  }
}

/** The folder and those in it, but not those of packages and tools. */
function folders(folder: string): string[] {
  const inner = readdirSync(folder, { withFileTypes: true }).filter(
    (entry) => entry.isDirectory() && !/^(\.|node_modules$)/.test(entry.name),
  );
  return [folder, ...inner.flatMap(({ name }) => folders(join(folder, name)))];
}

async function stop(worker: ChildProcess): Promise<void> {
  if (worker.exitCode !== null || worker.signalCode !== null) return;
  const exit = once(worker, "exit");
  worker.kill("SIGTERM");
  const hard = setTimeout(() => worker.kill("SIGKILL"), STOP_MS);
  await exit;
  clearTimeout(hard);
}
