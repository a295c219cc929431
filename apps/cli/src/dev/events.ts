import { duration } from "@carillon/ops/words";
import type { Scheduler } from "@carillon/scheduler";
import type { Client, LiveEvent, Logger, TaskName } from "@carillon/sdk";
import type { Output } from "../output.js";
import { line } from "./line.js";

/** Prints a line for each event of the namespace, whichever process causes it. */
export class Events {
  /** Runs whose start was printed, and whose end was not. */
  readonly #started = new Set<string>();

  constructor(
    private readonly client: Client,
    private readonly out: Output,
  ) {}

  say(what: string, task?: string, more?: string): void {
    this.print(line(what, task, more));
  }

  print(text: string): void {
    void this.out.write(text);
  }

  /** Prints warnings and errors. */
  readonly logger: Logger = {
    debug() {},
    info() {},
    warn: (details, message) => this.#log("warning", details, message),
    error: (details, message) => this.#log("error", details, message),
  };

  #log(level: string, details: object, message: string): void {
    const { what, task, error, remedy } = details as Record<string, string | undefined>;
    if (what === "empty") return; // as each namespace is at first
    this.say(level, task, [message, error, remedy].filter(Boolean).join(": "));
  }

  /** Prints what a node of this process enqueues. */
  hear(node: Scheduler): void {
    node.on("decided", ({ outcome, task, nominal }) => {
      if (outcome === "enqueued") this.say("enqueued", task, `for ${new Date(nominal).toISOString()}`);
    });
  }

  /** Prints all other events, until the returned function is called. */
  follow(): () => void {
    const ends = new AbortController();
    void this.#follow(ends.signal);
    return () => ends.abort();
  }

  async #follow(signal: AbortSignal): Promise<void> {
    for await (const event of this.client.events({ signal })) {
      // An event about data that is gone, or that Redis does not answer for, has fewer details.
      await this.#tell(event).catch(() => {});
    }
  }

  async #tell(event: LiveEvent): Promise<void> {
    switch (event.kind) {
      case "changed": {
        const { id, owner, queue, tag, calendar } = event.scope;
        const task = id === undefined ? (queue ?? owner ?? tag ?? calendar) : `${owner}/${id}`;
        return this.say(event.change, task);
      }
      case "skipped":
        return this.say("skipped", nameOf(event.task), event.reason);
      case "run-started":
        return this.#start(event.run, event.task);
      case "run-ended":
        return this.#end(event.run, event.task);
      case "reset":
        return this.say("…", "", "more happened than is shown");
    }
  }

  #start(run: string, task: TaskName): void {
    if (!this.#started.has(run)) this.say("started", nameOf(task));
    this.#started.add(run);
  }

  async #end(id: string, task: TaskName): Promise<void> {
    this.#start(id, task); // a short run has no event of its start
    this.#started.delete(id);
    const run = await this.client.runs.get(id);
    for (const { text } of run.output) {
      // The worker itself prints what its console prints.
      for (const [, said] of text.matchAll(/^log (.*)$/gm)) this.print(`          ${said}\n`);
    }
    const { outcome = run.state, started, finished, error } = run;
    const took = started === undefined || finished === undefined ? "" : `in ${duration(finished - started)}`;
    this.say(outcome, nameOf(task), error ?? took);
  }
}

function nameOf({ owner, id }: TaskName): string {
  return `${owner}/${id}`;
}
