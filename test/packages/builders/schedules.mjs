import { Client } from "@carillon/sdk";

/** One of each kind, in a zone whose clock changes where the kind has one. */
const SCHEDULES = {
  cron: { cron: "0 9 L * 1-5", timezone: "Europe/Berlin" },
  nightly: { cron: "30 2 * * *", timezone: "Europe/Berlin" },
  dialect: { cron: "0 9 * * 1#2", timezone: "Europe/Berlin", dialect: "cron-parser" },
  calendar: { calendar: "Mon..Fri *-*~01 02:30", timezone: "Europe/Berlin" },
  every: { every: "1 month", origin: "2026-01-31T09:00:00Z", timezone: "Europe/Berlin" },
  delay: { every: "10m", anchor: "finish" },
  at: { at: "2099-12-24T18:00:00+01:00" },
  any: { any: [{ cron: "0 9 * * *" }, { calendar: "daily" }], except: [{ calendar: "Sat,Sun" }] },
};

/** Puts a task of each kind; resolves with the next time of each, or with its error. */
export async function putAll() {
  const client = new Client({ connection: process.env.REDIS_URL, namespace: process.env.CARILLON_NAMESPACE });
  const next = {};
  for (const [id, schedule] of Object.entries(SCHEDULES)) {
    const put = client.put({ id, type: "bell", queue: "bells", schedule, payload: {} });
    next[id] = await put.then(({ nextExecution }) => nextExecution, String);
  }
  await client.close();
  return next;
}
