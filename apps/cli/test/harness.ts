import { Client, type TaskInput } from "@carillon/sdk";
import type { RedisServer } from "@carillon/testing";
import { afterAll, beforeEach, expect } from "vitest";
import { sharedRedis } from "../../../test/helpers.js";
import { carillon, type Ended, type RunOptions } from "./helpers.js";

type Input = NonNullable<RunOptions["input"]>;

export interface Harness {
  readonly redis: RedisServer;
  readonly namespace: string;
  readonly env: Record<string, string>;
  /** Sets the stage, because it is faster than the program. */
  readonly client: Client;
  cli(args: string[], input?: Input): Promise<Ended>;
  /** Runs it with --json, expects success and nothing on stderr, returns the document. */
  // biome-ignore lint/suspicious/noExplicitAny: documents of any shape
  json(args: string[], input?: Input): Promise<any>;
  /** Runs it with --json, expects nothing on stdout, returns the error and the exit code. */
  refusal(args: string[], input?: Input): Promise<{ exit: number | null; code: string; message: string }>;
}

/** Runs the program on this file's Redis, in a namespace for each test, or one for all of them. */
export function harness(name: string, { shared = false } = {}): Harness {
  const redis = sharedRedis();
  let serial = 0;
  let client: Client | undefined;
  afterAll(() => client?.close());
  beforeEach(async () => {
    if (shared) return;
    serial += 1;
    await client?.close();
    client = undefined;
  });
  const cli = (args: string[], input: Input = "") => carillon(args, { env: self.env, input });
  const self: Harness = {
    redis,
    get namespace() {
      return `${name}-${serial}`;
    },
    get client() {
      client ??= new Client({ connection: redis.url, namespace: self.namespace });
      return client;
    },
    get env() {
      return { REDIS_URL: redis.url, CARILLON_NAMESPACE: self.namespace };
    },
    cli,
    async json(args, input) {
      const { code, stdout, stderr } = await cli([...args, "--json"], input);
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      return JSON.parse(stdout);
    },
    async refusal(args, input) {
      const { code, stdout, stderr } = await cli([...args, "--json"], input);
      expect(stdout).toBe("");
      return { exit: code, ...JSON.parse(stderr).error };
    },
  };
  return self;
}

/** A task as `put` reads it. */
export function task(id: string, more: Partial<TaskInput> = {}): TaskInput {
  return { id, type: "noop", queue: "bar", schedule: { every: "1h" }, ...more };
}
