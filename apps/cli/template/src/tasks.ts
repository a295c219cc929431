import { defineTask, task } from "@carillon/sdk";
import { z } from "zod";

/** The work. A worker runs the handler; whoever puts a task needs only the shape of its payload. */
export const greet = defineTask("greet", {
  queue: "greetings",
  payload: z.object({ name: z.string() }),
  handler: async ({ name }, { log }) => log(`Hello, ${name}!`),
});

/** When it is done. Others: { cron: "0 9 * * 1-5", timezone: "Europe/Berlin" }, { at: "2030-01-01T00:00:00Z" } */
export const hello = task(greet, { id: "hello", schedule: { every: "5s" }, payload: { name: "Ada" } });
