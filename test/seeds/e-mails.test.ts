import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { operatorOf } from "@carillon/ops";
import { Client, defineTask } from "@carillon/sdk";
import { alertEmail } from "@carillon/sdk/http";
import nodemailer from "nodemailer";
import { SMTPServer } from "smtp-server";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { anything, Stand } from "./harness.js";

const stand = Stand.use();
const received: string[] = [];
let refuse = false;
const smtp = new SMTPServer({
  authOptional: true,
  disabledCommands: ["STARTTLS"],
  onData: async (stream, _session, done) => {
    const mail = await text(stream);
    if (!refuse) received.push(mail);
    done(refuse ? new Error("not now") : null);
  },
});
beforeAll(() => new Promise<void>((resolve) => void smtp.listen(0, "127.0.0.1", resolve)));
afterAll(() => new Promise<void>((resolve) => void smtp.close(resolve)));
beforeEach(() => {
  received.length = 0;
  refuse = false;
});

const REPORTS = defineTask("report", {
  queue: "reports",
  payload: anything,
  handler: () => Promise.reject(new Error("no paper")),
});

async function office() {
  const { port } = smtp.server.address() as AddressInfo;
  const transport = nodemailer.createTransport(`smtp://127.0.0.1:${port}`);
  const mails = alertEmail({ transport, from: "carillon@example.com" });
  const kit = await stand.kit({ types: [REPORTS, mails], start: "2026-01-01T00:00:30Z" });
  const put = (id: string, owner = "acme", to = "ops@example.com", second = "00") =>
    kit.client.put(REPORTS, {
      id,
      owner,
      schedule: { every: "10m", origin: `2026-01-01T00:00:${second}Z` },
      payload: {},
      alerts: [{ on: ["failed"], email: to }],
    });
  return { kit, put };
}

describe("E13 alerts go to an e-mail address, in one mail per minute", () => {
  it("ten failures of one cause make one mail, which names each", async () => {
    const { kit, put } = await office();
    // Carillon's own types are always allowed.
    await operatorOf(kit.client).types.allow({ types: ["report"] });
    for (let n = 0; n < 10; n++) await put(`t${n}`);
    await put("other", "beta");
    await kit.advance("12m");
    expect(received).toHaveLength(2);
    const mail = received.find((one) => one.includes("acme/t0")) ?? "";
    expect(mail).toMatch(/^Subject: \[carillon\] 10 tasks of 1 owner: failed/m);
    expect(mail).toMatch(/^To: ops@example.com/m);
    for (let n = 0; n < 10; n++) expect(mail).toContain(`acme/t${n}`);
    expect(mail).toContain("error: Error: no paper");
    expect(mail).not.toContain("beta");
    const single = received.find((one) => one.includes("beta")) ?? "";
    expect(single).toMatch(/^Subject: \[carillon\] beta\/other: failed/m);
    // They fail again, which is not reported again.
    await kit.advance("10m");
    expect(received).toHaveLength(2);
  });

  it("failures over a minute make one mail, those of the next minute another", async () => {
    const { kit, put } = await office();
    for (const second of ["00", "04", "08", "12", "16", "20", "28"])
      await put(`t${second}`, "acme", undefined, second);
    await kit.client.put(REPORTS, {
      id: "next",
      owner: "acme",
      schedule: { every: "10m", origin: "2026-01-01T00:01:10Z" },
      payload: {},
      alerts: [{ on: ["failed"], email: "ops@example.com" }],
    });
    await kit.advance("13m");
    // The first time of "next" is a minute after the put; the others are due ten minutes later.
    expect(received.map((one) => /^Subject: (.*)$/m.exec(one)?.[1])).toEqual([
      "[carillon] acme/next: failed",
      "[carillon] 8 tasks of 1 owner: failed",
    ]);
  });

  it("a refused mail is sent again with the same id", async () => {
    const { kit, put } = await office();
    await put("t");
    refuse = true;
    await kit.advance("11m1s");
    expect(received).toEqual([]);
    refuse = false;
    await kit.advance("30s");
    expect(received).toHaveLength(1);
    expect(received[0]).toMatch(/^Message-ID:\s+<digest-[\w.-]+@carillon>/m);
  });

  it("an address is checked, and excludes a URL", async () => {
    const client = new Client({ connection: stand.redis.url, namespace: stand.namespace });
    const put = (alert: object) =>
      client.put({
        id: "t",
        type: "report",
        queue: "q",
        schedule: { every: "1h" },
        alerts: [alert as never],
      });
    const on = ["failed"];
    await expect(put({ on, email: "ops" })).rejects.toMatchObject({ field: "alerts[0].email" });
    await expect(put({ on })).rejects.toMatchObject({ code: "INVALID_TASK", field: "alerts[0].url" });
    await expect(put({ on, email: "a@b.example", url: "https://b.example" })).rejects.toMatchObject({
      field: "alerts[0].email",
    });
    expect(() => alertEmail({ transport: {} as never, from: "a@b.example" })).toThrow(/createTransport/);
    expect(() => alertEmail({ transport: { sendMail: async () => {} }, from: "me" })).toThrow(/sender/);
    await client.close();
  });
});

describe("E20 an administrator is one person: default alerts of all tasks are collected by address", () => {
  it("150 owners fail at once: one mail", async () => {
    const { kit, put } = await office();
    const schedule = { every: "10m", origin: "2026-01-01T00:00:00Z" } as const;
    const alerts = [{ on: ["failed" as const], email: "admin@example.com" }];
    await operatorOf(kit.client).defaults.set({ scope: "all", policies: { alerts } });
    const owners = Array.from({ length: 150 }, (_, n) => `owner${n}`);
    await kit.client.putMany(
      owners.map((owner) => ({ id: "t", owner, type: "report", queue: "reports", schedule, payload: {} })),
    );
    // An address that a task names itself gets those of its owner.
    await put("own", "owner0", "admin@example.com");
    await kit.advance("12m");
    expect(received.map((one) => /^Subject: (.*)$/m.exec(one)?.[1]).sort()).toEqual([
      "[carillon] 150 tasks of 150 owners: failed",
      "[carillon] owner0/own: failed",
    ]);
  });
});
