import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { closing, putClosing } from "../../examples/business-days/closing.mjs";
import { newsletter } from "../../examples/fan-out/newsletter.mjs";
import { startServer } from "../../examples/http-server/server.mjs";
import { processMail, putDigest } from "../../examples/plain-bullmq-worker/digest.mjs";
import { deleteReminder, reminder, saveReminder } from "../../examples/task-per-user/reminders.mjs";
import { SILENT } from "../helpers.js";
import { Stand } from "../seeds/harness.js";

const stand = Stand.use();

it("task-per-user: each user is reminded at their own hour, until they leave", async () => {
  const kit = await stand.kit({ types: [reminder], start: "2026-01-01T00:00:00Z" });
  await saveReminder(kit.client, "ada", { hour: 8, timezone: "Europe/London", text: "water the plants" });
  await saveReminder(kit.client, "grace", { hour: 7, timezone: "America/New_York", text: "feed the cat" });
  await kit.advance("1 day");
  await kit.expect("ada/daily").firedAt(["2026-01-01T08:00:00Z"]).outcome("succeeded");
  await kit.expect("grace/daily").firedAt(["2026-01-01T12:00:00Z"]).outcome("succeeded");

  await saveReminder(kit.client, "ada", { hour: 9, timezone: "Europe/London", text: "water the plants" });
  await deleteReminder(kit.client, "grace");
  await kit.advance("1 day");
  await kit.expect("ada/daily").firedAt(["2026-01-01T08:00:00Z", "2026-01-02T09:00:00Z"]);
  await expect(kit.client.get("grace/daily")).rejects.toMatchObject({ code: "TASK_NOT_FOUND" });
});

it("business-days: working days only, at the hour of Berlin", async () => {
  const kit = await stand.kit({ types: [closing], start: "2027-03-24T00:00:00Z" });
  await putClosing(kit.client);
  await kit.advanceTo("2027-03-31T00:00:00Z");
  // Good Friday, the weekend and Easter Monday; summer time began on Sunday.
  await kit
    .expect("daily-closing")
    .firedAt(["2027-03-24T16:00:00Z", "2027-03-25T16:00:00Z", "2027-03-30T15:00:00Z"])
    .outcome("succeeded");
});

it("fan-out: a mail that fails is sent again, with the same key; the others once", async () => {
  const sent: string[] = [];
  const keys = new Set<string>();
  const type = newsletter(
    { list: async () => ["ada", "grace", "edsger"] },
    {
      async send(to, _issue, key) {
        sent.push(to);
        keys.add(key);
        if (to === "grace" && sent.filter((name) => name === to).length === 1)
          throw new Error("mailbox busy");
      },
    },
  );
  const kit = await stand.kit({ types: [type], start: "2026-01-01T00:00:00Z" });
  await kit.client.put(type, {
    id: "issue",
    payload: { issue: 1 },
    schedule: { at: "2026-01-01T06:00:00Z" },
  });
  await kit.advanceTo("2026-01-01T07:00:00Z");
  await kit.expect("issue").fired(1).outcome("succeeded");
  expect(sent.toSorted()).toEqual(["ada", "edsger", "grace", "grace"]);
  expect(keys.size).toBe(3);
});

it("plain-bullmq-worker: each Monday, in a worker that knows only BullMQ", async () => {
  const kit = await stand.kit({ worker: false, start: "2026-01-01T00:00:00Z" });
  kit.bullWorker("mail", processMail);
  await putDigest(kit.client);
  await kit.advanceTo("2026-01-13T00:00:00Z");
  await kit.expect("digest").firedAt(["2026-01-05T06:00:00Z", "2026-01-12T06:00:00Z"]).outcome("succeeded");
});

it("http-server: takes requests, runs what they enqueue, answers bad ones, and stops", async () => {
  const settings = { connection: stand.redis.url, namespace: stand.namespace, logger: SILENT };
  const { server, stop } = await startServer(settings, 0);
  stand.later(() => stop());
  const { port } = server.address() as { port: number };
  const ask = (path: string, body?: object) =>
    fetch(`http://127.0.0.1:${port}${path}`, body && { method: "POST", body: JSON.stringify(body) });

  expect((await ask("/health")).status).toBe(200);
  expect((await ask("/reports", { tenant: 7 })).status).toBe(400);
  expect((await ask("/reports", { tenant: "acme" })).status).toBe(202);
  await expect.poll(async () => (await ask("/reports/acme")).status, { timeout: 60_000 }).toBe(200);
});

const folder = new URL("../../examples/", import.meta.url);
const programs = readdirSync(folder, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);

/** Examples with tests of their own. */
const OTHERS = ["http-server", "postgres-handler"];

it.each(programs.filter((name) => !OTHERS.includes(name)))("%s/main.mjs runs to its end", async (name) => {
  const program = stand.program(fileURLToPath(new URL(`${name}/main.mjs`, folder)));
  const { code, stdout } = await program.toItsEnd();
  expect(stdout).toMatch(/: (succeeded|completed)$/m);
  expect(code).toBe(0);
});

it("http-server/main.mjs stops when it is asked to", async () => {
  const file = fileURLToPath(new URL("http-server/main.mjs", folder));
  const program = stand.program(file, { PORT: "0" });
  await program.says({ msg: "listening" });
  program.signal("SIGTERM");
  expect(await program.ended).toMatchObject({ code: 0 });
});
