import type { Store } from "@carillon/store";
import type { ClaimSettings } from "../../src/seams.js";
import { Actor } from "./actor.js";
import type { Director } from "./director.js";
import type { Ears } from "./ears.js";
import { type Equipment, PREFIX, ROLES, type Role } from "./equipment.js";
import type { FreezeWatch } from "./freeze-watch.js";
import { NodeActor } from "./node-actor.js";
import { type Operation, QUEUE } from "./operations.js";
import { CarillonWorkerActor, PlainWorkerActor } from "./worker-actor.js";

/** A client, which does one thing at a time. */
export class ClientActor extends Actor {
  readonly kind = "client";
  /** The operation in progress. */
  busy: { readonly what: string; readonly id: string } | undefined;

  constructor(
    name: Role,
    readonly store: Store,
  ) {
    super(name);
  }

  async perform(operation: Operation, freezes: FreezeWatch): Promise<string> {
    this.busy = operation;
    try {
      return String(await operation.run(this.store, freezes));
    } finally {
      this.busy = undefined;
    }
  }

  override abandon(): void {
    super.abandon();
    this.busy = undefined;
  }
}

export type CastMember = NodeActor | ClientActor | CarillonWorkerActor | PlainWorkerActor;

/** Parts of the simulation that the cast needs. */
export interface Hooks {
  readonly director: Director;
  pass(actor: CastMember, point: string, key?: string): Promise<void>;
  wrong(what: string): void;
  began(task: string, fence: number): void;
  readonly claims: ClaimSettings;
}

/** All actors of one simulation. */
export class Cast {
  readonly nodes: readonly NodeActor[];
  readonly clients: readonly ClientActor[];
  readonly workers: readonly (CarillonWorkerActor | PlainWorkerActor)[];
  readonly all: readonly CastMember[];

  constructor(equipment: Equipment, hooks: Hooks) {
    const parts = (role: Role) => ({
      director: hooks.director,
      wrong: hooks.wrong,
      began: hooks.began,
      claims: hooks.claims,
      ...equipment.of(role),
      queue: QUEUE,
      prefix: PREFIX,
      pass: (point: string, key?: string) => hooks.pass(this.named(role), point, key),
    });
    this.nodes = ROLES.node.map((role) => new NodeActor(role, parts(role)));
    this.clients = ROLES.client.map((role) => new ClientActor(role, equipment.of(role).store));
    this.workers = [
      ...ROLES.worker.map((role) => new CarillonWorkerActor(role, parts(role))),
      ...ROLES.plain.map((role) => new PlainWorkerActor(role, parts(role))),
    ];
    this.all = [...this.nodes, ...this.clients, ...this.workers];
  }

  named(role: Role): CastMember {
    return this.all.find(({ name }) => name === role) as CastMember;
  }

  async ready(): Promise<void> {
    for (const worker of this.workers) await worker.ready();
  }

  /** Actors that receive published messages. */
  get listeners(): { actor: Actor; ears: Ears | undefined }[] {
    return this.all.map((actor) => ({ actor, ears: "ears" in actor ? actor.ears : undefined }));
  }

  async close(): Promise<void> {
    for (const worker of this.workers) await worker.close();
  }
}
