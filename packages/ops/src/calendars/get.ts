import { z } from "zod";
import { operation } from "../operation.js";
import { given } from "../shapes.js";
import { calendar, findCalendar } from "./calendar.js";

export const getCalendar = operation({
  http: "GET /calendars/:name",
  role: "viewer",
  reach: "owner",
  summary: "Reads a shared calendar with its entries.",
  input: z.strictObject({ name: given.describe("A calendar's name.") }),
  output: calendar.extend({ entries: z.array(z.string()) }),
  async run({ store }, { name }) {
    const { entries, ...found } = await findCalendar(store, name);
    return { ...found, entries: [...entries] };
  },
});
