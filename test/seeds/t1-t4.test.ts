import { type Context, defineTask } from "@carillon/sdk";
import type { TestKit } from "@carillon/testing";
import { describe, expect, test } from "vitest";
import { anything, Stand } from "./harness.js";

const stand = Stand.use();

/**
 * Due every minute, first at 00:30. Runs may overlap. A run is dropped if it starts less than 60 s (5 s tolerated)
 * after the one before; none may take longer than half a minute.
 */
class Mailbox {
  readonly kit: TestKit;

  private constructor(kit: TestKit) {
    this.kit = kit;
  }

  static async open(handler: (kit: TestKit, context: Context) => Promise<void>): Promise<Mailbox> {
    const fetchMail = defineTask("fetch-mail", {
      queue: "mail",
      payload: anything,
      handler: (_payload, context) => handler(kit, context),
    });
    const kit = await stand.kit({ types: [fetchMail], concurrency: 1 });
    await kit.worker.pause();
    await kit.client.put(fetchMail, {
      id: "a",
      schedule: { every: "60s", origin: "2026-01-01T00:00:30Z" },
      overlap: "allow",
      minGap: "55s",
      timeLimit: "50%",
      payload: {},
    });
    return new Mailbox(kit);
  }

  /** The worker, paused otherwise, takes one job at this moment. */
  takesOneAt(moment: string): void {
    this.kit.at(moment, async () => {
      await this.kit.worker.resume();
      await this.kit.sleep("1s");
      await this.kit.worker.pause();
    });
  }

  /** Start of the last run, counted from the kit's start. */
  async lastRun(): Promise<string> {
    const { lastStart } = await this.kit.client.runs.stats("a");
    return new Date(lastStart ?? 0).toISOString().slice(14, 19);
  }
}

describe("T1 the second run starts 57 s after the first", () => {
  test("A1 from 00:35 to 00:45, A2 from 01:32", async () => {
    const mail = await Mailbox.open((kit) => kit.sleep("10s"));
    mail.takesOneAt("00:35");
    mail.takesOneAt("01:32");
    await mail.kit.advanceTo("01:32");
    expect(await mail.lastRun()).toBe("01:32");
    await mail.kit.advanceTo("02:29");
    await mail.kit
      .expect("a")
      .firedAt(["00:30", "01:30"])
      .firedFor(["00:30", "01:30"])
      .ranAt(["00:35", "01:32"])
      .finishedAt(["00:45", "01:42"])
      .outcomes(["succeeded", "succeeded"])
      .skipped(0)
      .nextAt("02:30");
    expect(await mail.lastRun()).toBe("01:32");
  });
});

describe("T2 a worker that is a minute late", () => {
  test("A1 from 01:35 to 01:38, A2 from 02:37: nothing is dropped", async () => {
    const mail = await Mailbox.open((kit) => kit.sleep("3s"));
    mail.takesOneAt("01:35");
    mail.takesOneAt("02:37");
    await mail.kit.advanceTo("02:45");
    await mail.kit
      .expect("a")
      .firedAt(["00:30", "01:30", "02:30"])
      .ranAt(["01:35", "02:37"])
      .finishedAt(["01:38", "02:40"])
      .outcomes(["succeeded", "succeeded"])
      .skipped(0)
      .nextAt("03:30");
    expect(await mail.lastRun()).toBe("02:37");
    expect(await mail.kit.client.runs.stats("a")).toMatchObject({
      runs: 3,
      open: 1,
      outcomes: { dropped: 0 },
    });
  });
});

describe("T3 the second run starts 28 s after the first", () => {
  test("A1 from 01:35 to 01:38, A2 at 02:03 is dropped, A3 from 02:56", async () => {
    const started: string[] = [];
    const mail = await Mailbox.open(async (kit) => {
      started.push(new Date().toISOString().slice(14, 19));
      await kit.sleep("3s");
    });
    mail.takesOneAt("01:35");
    mail.takesOneAt("02:03");
    mail.takesOneAt("02:56");
    await mail.kit.advanceTo("02:55");
    expect(await mail.lastRun()).toBe("01:35");
    const { runs } = await mail.kit.client.runs.journal({ task: "a", outcome: "dropped" });
    expect(runs).toMatchObject([
      { nominal: mail.kit.now - 85_000, error: expect.stringContaining("28000 ms") },
    ]);

    await mail.kit.advanceTo("03:00");
    await mail.kit
      .expect("a")
      .firedAt(["00:30", "01:30", "02:30"])
      .finishedAt(["01:38", "02:03", "02:59"])
      .outcomes(["succeeded", "dropped", "succeeded"])
      .nextAt("03:30");
    expect(started).toEqual(["01:35", "02:56"]);
    expect(await mail.lastRun()).toBe("02:56");
  });
});

describe("T4 the first run never ends by itself", () => {
  test("A1 from 00:35 ends as partial at 01:05, A2 runs from 01:32", async () => {
    const mail = await Mailbox.open(async (kit, { signal }) => {
      while (!signal.aborted) await kit.sleep("1s", { signal }).catch(() => {});
    });
    mail.takesOneAt("00:35");
    mail.takesOneAt("01:32");
    await mail.kit.advanceTo("01:45");
    await mail.kit
      .expect("a")
      .firedAt(["00:30", "01:30"])
      .ranAt(["00:35", "01:32"])
      .finishedAt(["01:05"])
      .outcomes(["partial"]);
    await mail.kit.advanceTo("02:05");
    await mail.kit
      .expect("a")
      .finishedAt(["01:05", "02:02"])
      .outcomes(["partial", "partial"])
      .nextAt("02:30");
  });
});

/** Each line of the four tables: when, and the next and the last run after it ("-" none yet). */
const TABLES: Record<string, readonly (readonly [at: string, next: string, last: string])[]> = {
  T1: [
    ["00:00", "00:30", "-"],
    ["00:30", "01:30", "-"],
    ["00:35", "01:30", "00:35"],
    ["00:45", "01:30", "00:35"],
    ["01:30", "02:30", "00:35"],
    ["01:32", "02:30", "01:32"],
    ["01:42", "02:30", "01:32"],
  ],
  T2: [
    ["00:00", "00:30", "-"],
    ["00:30", "01:30", "-"],
    ["01:30", "02:30", "-"],
    ["01:35", "02:30", "01:35"],
    ["01:38", "02:30", "01:35"],
    ["02:30", "03:30", "01:35"],
    ["02:37", "03:30", "02:37"],
  ],
  T3: [
    ["00:30", "01:30", "-"],
    ["01:30", "02:30", "-"],
    ["01:35", "02:30", "01:35"],
    ["01:38", "02:30", "01:35"],
    ["02:03", "02:30", "01:35"],
    ["02:30", "03:30", "01:35"],
    ["02:56", "03:30", "02:56"],
  ],
  T4: [
    ["00:00", "00:30", "-"],
    ["00:30", "01:30", "-"],
    ["00:35", "01:30", "00:35"],
    ["01:05", "01:30", "00:35"],
    ["01:30", "02:30", "00:35"],
    ["01:32", "02:30", "01:32"],
    ["02:02", "02:30", "01:32"],
  ],
};
const TAKES: Record<string, readonly string[]> = {
  T1: ["00:35", "01:32"],
  T2: ["01:35", "02:37"],
  T3: ["01:35", "02:03", "02:56"],
  T4: ["00:35", "01:32"],
};

describe("T8 the next and the last run at each line of T1 to T4", () => {
  test.each(Object.keys(TABLES))("%s", async (table) => {
    const takes = { T1: "10s", T2: "3s", T3: "3s" }[table] as "10s" | undefined;
    const mail = await Mailbox.open(async (kit, { signal }) => {
      if (takes) return kit.sleep(takes);
      while (!signal.aborted) await kit.sleep("1s", { signal }).catch(() => {});
    });
    for (const moment of TAKES[table] as readonly string[]) mail.takesOneAt(moment);
    const seen: string[][] = [];
    for (const [at] of TABLES[table] as (typeof TABLES)[string]) {
      if (at !== "00:00") await mail.kit.advanceTo(at);
      const { nextExecution } = await mail.kit.client.get("a");
      const { lastStart } = await mail.kit.client.runs.stats("a");
      const text = (time: number | undefined) =>
        time === undefined ? "-" : new Date(time).toISOString().slice(14, 19);
      seen.push([at, text(nextExecution), text(lastStart)]);
    }
    expect(seen).toEqual(TABLES[table]);
  });
});
