import { Client } from "@carillon/sdk";
import { eventually } from "@carillon/testing";
import { afterEach, beforeAll, expect, test, vi } from "vitest";
import { inTurn } from "../src/api/in-turn.js";
import { SharedAnswers } from "../src/api/shared.js";
import type { Ctx } from "../src/context.js";
import { ADMIN, ownConsole, sessionOf, VIEWER } from "./harness.js";

const SCHEDULE = { schedule: { every: "1h" } };
/** One call in progress, and those that may wait. */
const PLACES = 11;

const console_ = ownConsole();
/** Ends the call in progress: each call asks Redis for the time. */
let endCall: (() => void)[] = [];
beforeAll(async () => {
  const schedule = { every: "1s", start: "2026-01-01T00:00:00Z" };
  await console_.client.put({ id: "a", type: "t", queue: "q", schedule });
});
afterEach(() => vi.restoreAllMocks());

function holdCalls(): void {
  endCall = [];
  const { serverTime } = Client.prototype;
  vi.spyOn(Client.prototype, "serverTime").mockImplementation(async function (this: Client) {
    await new Promise<void>((resolve) => void endCall.push(resolve));
    return serverTime.call(this);
  });
}

const by = (token: string) => ({ authorization: `Bearer ${token}` });
const validate = (token: string) => console_.api("POST", "/tasks/validate", SCHEDULE, by(token));
const forecast = (token: string) => console_.api("GET", "/upcoming?within=1m", undefined, by(token));
const past = { from: "2026-01-01T00:00:00Z", to: "2026-01-01T00:01:00Z", dryRun: true };
const dryRun = (token: string) => console_.api("POST", "/tasks/q/system/a/backfills", past, by(token));

test("expensive calls run one at a time for each token; all but a few that wait are refused", async () => {
  holdCalls();
  const statuses: number[] = [];
  const asked = Array.from({ length: PLACES + 9 }, async () => {
    const { status, headers } = await validate(VIEWER);
    if (status === 429) expect(headers.get("retry-after")).toMatch(/^[1-9]\d*$/);
    statuses.push(status);
  });
  await eventually(() => statuses.length === 9 && endCall.length === 1);
  expect(new Set(statuses)).toEqual(new Set([429]));
  const refused = await forecast(VIEWER);
  expect([refused.status, refused.body.error?.code]).toEqual([429, "RATE_LIMITED"]);
  expect(refused.body.error?.remedy).toMatch(/\w/);
  // Calls that only read do not wait for this call, nor do those of other tokens.
  const reading = await console_.api("GET", "/tasks", undefined, by(VIEWER));
  expect(reading.status).toBe(200);
  expect((await dryRun(ADMIN)).body).toEqual({ total: 61 });
  for (let n = 0; n < PLACES; n++) {
    await eventually(() => endCall.length === n + 1);
    endCall[n]?.();
  }
  await Promise.all(asked);
  expect(statuses.slice(9)).toEqual(new Array(PLACES).fill(200));
  expect((await forecast(VIEWER)).status).toBe(200);
});

test("a call that fails does not hold up the next", async () => {
  const answers = await Promise.all([
    console_.api("POST", "/tasks/validate", {}, by(VIEWER)),
    console_.api("GET", "/upcoming?within=soon", undefined, by(VIEWER)),
    validate(VIEWER),
  ]);
  expect(answers.map(({ status }) => status)).toEqual([400, 400, 200]);
});

test("people who signed in with one token do not wait for each other", async () => {
  const signIn = async () => sessionOf(await console_.ask(`/?token=${VIEWER}`));
  const cookies = [await signIn(), await signIn()];
  holdCalls();
  const asked = cookies.map((cookie) =>
    console_.ask("/api/v1/tasks/validate", {
      method: "POST",
      headers: { cookie, origin: console_.url, "content-type": "application/json" },
      body: JSON.stringify(SCHEDULE),
    }),
  );
  await eventually(() => endCall.length === 2);
  for (const end of endCall) end();
  expect((await Promise.all(asked)).map(({ status }) => status)).toEqual([200, 200]);
});

test("a waiting call is dropped once nobody waits for it", async () => {
  const computed: string[] = [];
  let end = () => {};
  const gate = new Promise<void>((resolve) => {
    end = resolve;
  });
  const [turn, shared] = [inTurn(), new SharedAnswers()];
  const ask = (name: string, signal = new AbortController().signal) => {
    const req = { raw: { signal }, header: () => "max-age=1" };
    const c = { req, var: { identity: {} } } as unknown as Ctx;
    const work = async () => {
      computed.push(name);
      await gate;
    };
    return shared.get(c, [name], (isWanted) => turn(c, work, isWanted));
  };
  const left = new AbortController();
  const asked = [
    ...[ask("first"), ask("left", left.signal), ask("left by one", left.signal), ask("left by one")],
    ask("last"),
  ];
  left.abort();
  end();
  const ends = await Promise.allSettled(asked);
  expect(computed).toEqual(["first", "left by one", "last"]);
  expect(ends.map(({ status }) => status === "fulfilled")).toEqual([true, false, true, true, true]);
});
