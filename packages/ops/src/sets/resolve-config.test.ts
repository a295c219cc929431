import { defineTask } from "@carillon/sdk";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { defineConfig, type SetFile } from "./define-config.js";
import { resolveConfig } from "./resolve-config.js";

const daily = { cron: "0 6 * * *" };
const file = defineConfig({
  set: "billing",
  defaults: { queue: "billing", type: "invoice", timezone: "Europe/Berlin", retry: { attempts: 3 } },
  tasks: [
    { id: "invoices", schedule: daily },
    {
      id: "dunning",
      owner: "acme",
      schedule: { cron: "0 7 * * *", timezone: "UTC" },
      retry: { attempts: 1 },
    },
    { id: "audit", schedule: { every: "1h" } },
  ],
  environments: {
    production: {},
    staging: {
      defaults: { state: "paused", retry: { attempts: 2 } },
      tasks: { invoices: { schedule: { every: "1d" } }, "acme/dunning": { state: "running" }, audit: false },
    },
  },
});

describe("resolveConfig", () => {
  it("gives tasks the fields of defaults that they do not have, and a zone to expressions that have none", async () => {
    const { tasks, ...rest } = await resolveConfig(file, "production");
    expect(rest).toEqual({ set: "billing" });
    const common = { queue: "billing", type: "invoice" };
    expect(tasks).toEqual([
      {
        id: "invoices",
        ...common,
        retry: { attempts: 3 },
        schedule: { ...daily, timezone: "Europe/Berlin" },
      },
      {
        id: "dunning",
        owner: "acme",
        ...common,
        retry: { attempts: 1 },
        schedule: { cron: "0 7 * * *", timezone: "UTC" },
      },
      { id: "audit", ...common, retry: { attempts: 3 }, schedule: { every: "1h" } },
    ]);
  });

  it("changes what an environment changes: defaults, single tasks, and those that it does not have", async () => {
    const { tasks } = await resolveConfig(file, "staging");
    expect(tasks).toMatchObject([
      { id: "invoices", state: "paused", retry: { attempts: 2 }, schedule: { every: "1d" } },
      { id: "dunning", state: "running", retry: { attempts: 1 } },
    ]);
  });

  it("gives a zone to each member of a union, but not to a calendar event with its own", async () => {
    const any = [{ calendar: "09:00 UTC" }, { calendar: "10:00" }, { at: 0 }];
    const { tasks } = await resolveConfig({
      set: "b",
      defaults: { timezone: "Asia/Tokyo" },
      tasks: [{ id: "a", type: "t", queue: "q", schedule: { any } }],
    });
    expect(tasks[0]?.schedule).toEqual({
      any: [{ calendar: "09:00 UTC" }, { calendar: "10:00", timezone: "Asia/Tokyo" }, { at: 0 }],
    });
  });

  it.each<[string, string | undefined, object]>([
    ["environment: missing. Give one of production, staging", undefined, {}],
    ["environment: the file has no environment stagin. Did you mean staging?", "stagin", {}],
    [
      "defaults.timezon: there is no such option. Did you mean timezone?",
      "production",
      { defaults: { timezon: "UTC" } },
    ],
    ["environments.a.task: there is no such option", "a", { environments: { a: { task: {} } } }],
    [
      "environments.a.tasks: the file has no task system/x",
      "a",
      { environments: { a: { tasks: { x: false } } } },
    ],
    [
      "environments.a.tasks.audit.id: there is no such",
      "a",
      { environments: { a: { tasks: { audit: { id: "b" } } } } },
    ],
  ])("says %s", async (message, environment, more) => {
    const wrong = resolveConfig({ ...file, ...more } as SetFile, environment);
    await expect(wrong).rejects.toMatchObject({
      code: "INVALID_OPTION",
      message: expect.stringContaining(message),
    });
  });

  it("checks the payloads of tasks whose types the file has", async () => {
    const invoice = defineTask("invoice", { queue: "billing", payload: z.object({ customer: z.string() }) });
    const task = { id: "a", type: "invoice", queue: "billing", schedule: daily };
    const of = (payload: object) =>
      resolveConfig({ set: "b", types: [invoice], tasks: [{ ...task, payload }] });
    expect((await of({ customer: "acme" })).tasks).toHaveLength(1);
    await expect(of({ customer: 1 })).rejects.toMatchObject({
      code: "INVALID_PAYLOAD",
      field: "[0].payload.customer",
    });
  });

  it("leaves other faults to the operation, which names them", async () => {
    expect(await resolveConfig({ set: "b", tasks: "none" } as never)).toEqual({ set: "b", tasks: "none" });
    expect((await resolveConfig({ set: "b", tasks: [1] } as never)).tasks).toEqual([1]);
  });
});
