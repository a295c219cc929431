import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { alertEmail } from "../../src/http/email.js";
import { Receivers } from "../../src/http/receivers.js";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A request that ends when it is told to. */
function request(receivers: Receivers, name: string) {
  let resolve = () => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  const begun = vi.fn(() => promise);
  return { begun, end: () => resolve(), sent: receivers.ask(name, begun).then(() => "sent", String) };
}

it("gives a receiver that hangs three places, and holds no others for longer than a second", async () => {
  const receivers = new Receivers();
  const hung = Array.from({ length: 10 }, () => request(receivers, "dead"));
  const other = request(receivers, "other");
  other.end();
  expect(await other.sent).toBe("sent");
  await vi.advanceTimersByTimeAsync(1_000);
  expect(hung.map(({ begun }) => begun.mock.calls.length)).toEqual([1, 1, 1, 0, 0, 0, 0, 0, 0, 0]);
  for (const { sent } of hung.slice(3)) {
    expect(await sent).toBe("HttpError: dead does not answer: an earlier request is still under way.");
  }
  for (const { end } of hung) end();
  expect(await hung[0]?.sent).toBe("sent");
});

it("lets alerts wait for a receiver that answers, however many there are", async () => {
  const receivers = new Receivers();
  const all = Array.from({ length: 10 }, () => request(receivers, "slow"));
  for (const one of all) {
    await vi.advanceTimersByTimeAsync(900);
    expect(one.begun).toHaveBeenCalledOnce();
    one.end();
    expect(await one.sent).toBe("sent");
  }
});

it("gives up a mail server that hangs", async () => {
  const sendMail = vi.fn(() => new Promise<void>(() => {}));
  const type = alertEmail({ transport: { sendMail }, from: "carillon@example.com" });
  const to = { format: "email", email: "ann@example.com" };
  const mail = { to, namespace: "n", alerts: [] };
  const handler = type.handler as unknown as (mail: object, context: object) => Promise<void>;
  const sent = handler(mail, { occurrence: { run: "r" } }).then(() => "sent", String);
  await vi.advanceTimersByTimeAsync(30_000);
  expect(await sent).toBe("HttpError: The mail server did not answer within 30000 ms.");
});
