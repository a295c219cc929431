import { Scheduler } from "@carillon/scheduler";
import { withNodeSeams } from "@carillon/scheduler/internal";
import type { Store } from "@carillon/store";
import type { ClaimSettings } from "../../src/seams.js";
import { Actor } from "./actor.js";
import type { Director } from "./director.js";
import { Ears } from "./ears.js";

/** Code of errors that a node may report without a fault: its answers were lost. */
const EXPECTED = "REDIS_UNAVAILABLE";

export interface NodeParts {
  readonly director: Director;
  readonly store: Store;
  readonly claims?: ClaimSettings;
  wrong(what: string): void;
}

/** A real node in its own rounds. A new one takes its place after its death. */
export class NodeActor extends Actor {
  readonly kind = "node";
  readonly store: Store;
  ears: Ears | undefined;
  /** The running node, if there is one. */
  scheduler: Scheduler | undefined;
  readonly #director: Director;
  readonly #wrong: (what: string) => void;
  readonly #claims: ClaimSettings | undefined;
  #lives = 0;

  constructor(name: string, parts: NodeParts) {
    super(name);
    const { store } = parts;
    this.store = store;
    this.#director = parts.director;
    this.#claims = parts.claims;
    this.#wrong = (what) => parts.wrong(what);
    store.connect = () => {
      this.ears = new Ears();
      return this.ears.client;
    };
  }

  /** Starts a new process in place of one that died. */
  async start(): Promise<void> {
    this.#lives += 1;
    const nodeId = `${this.name}.${this.#lives}`;
    const error = (details: object, message: string) => {
      if ((details as { code?: string }).code === EXPECTED) return;
      this.#wrong(`${nodeId}: ${message} ${JSON.stringify(details)}`);
    };
    await this.#director.move(this, () => {
      const logger = { debug() {}, info() {}, warn() {}, error };
      const options = {
        store: this.store,
        nodeId,
        logger,
        unsafeRedis: "warn",
        heartbeatEvery: 300_000,
      } as const;
      const node = new Scheduler(withNodeSeams(options, { claims: this.#claims }));
      this.scheduler = node;
      node.start().catch((reason: unknown) => this.#wrong(`${nodeId} could not start: ${String(reason)}`));
    });
  }

  override abandon(): void {
    super.abandon();
    this.ears = undefined;
  }
}
