/** Names that examples of the documentation use and do not declare: see examples.test.ts. Only types; nothing runs it. */

import type { createServer as serve } from "node:http";
import type { operatorOf as operator } from "@carillon/ops";
import * as sdk from "@carillon/sdk";
import type * as testing from "@carillon/testing";
import type { NestFactory as nest } from "@nestjs/core";
import { z as zod } from "zod";

/** As in docs/policies/README.md. */
const exampleType = sdk.defineTask("report", {
  queue: "reports",
  payload: zod.object({ tenant: zod.string() }),
  handler: async ({ tenant }, { log }) => log(`report for ${tenant}`),
});

declare global {
  // Imports of a longer example on the same page.
  const Client: typeof sdk.Client;
  type Client = sdk.Client;
  const Worker: typeof sdk.Worker;
  type Worker = sdk.Worker;
  const PermanentError: typeof sdk.PermanentError;
  const createServer: typeof serve;
  const defineTask: typeof sdk.defineTask;
  function expect(value: unknown): { toHaveLength(length: number): void };
  const httpRequest: typeof sdk.httpRequest;
  const implement: typeof sdk.implement;
  const operatorOf: typeof operator;
  const startFaultProxy: typeof testing.startFaultProxy;
  const z: typeof zod;

  // Examples that go on from another one: docs/policies/README.md, and the page itself.
  const client: sdk.Client;
  const connection: { url: string };
  const ops: ReturnType<typeof operator>;
  const redis: testing.RedisServer;
  const report: typeof exampleType;
  const run: string;
  const task: { id: string; payload: { tenant: string }; schedule: { every: string } };
  const worker: sdk.Worker;

  // Parts of a reader's application.
  const database: { query(sql: string, values: unknown[]): Promise<{ rows: unknown[]; rowCount: number }> };
  const metrics: { record(...facts: unknown[]): void };
  const payments: {
    charge(
      account: string,
      cents: number,
      options: { idempotencyKey: string; signal: AbortSignal },
    ): Promise<void>;
  };
  const statements: { write(account: string, options: { fence: number }): Promise<void> };
  interface Mailer {
    send(to: string): Promise<void>;
  }
  const mailer: Mailer;
  function reminder(mailer: Mailer): typeof report;
  const CHARGE: string;
  const OPEN_STATEMENT: string;
  const WRITE_STATEMENT: string;
  function collect(of: string, signal: AbortSignal): Promise<string>;
  function once(key: unknown, act: () => unknown): Promise<unknown>;
  function send(payload: unknown, key?: string): Promise<void>;

  // NestJS
  const NestFactory: typeof nest;
  const AppModule: object;
}
