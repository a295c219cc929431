import { CarillonError, parseTask, type TaskInput } from "@carillon/core";
import { describe, expect, it } from "vitest";

const LEAST: TaskInput = { id: "t", type: "noop", queue: "q", schedule: { every: "10s" } };

function refused(input: unknown): CarillonError {
  try {
    parseTask(input);
  } catch (error) {
    if (error instanceof CarillonError) return error;
    throw error;
  }
  throw new Error("It was accepted.");
}

describe("a task definition", () => {
  it("needs id, type, queue and schedule, and has defaults for the rest", () => {
    expect(parseTask(LEAST)).toEqual({
      definition: {
        id: "t",
        type: "noop",
        queue: "q",
        schedule: { every: "10s" },
        owner: "system",
        payload: {},
        tags: [],
        enabled: true,
        priority: 0,
        overlap: "skip",
        catchUp: "one",
      },
      payloadJson: "{}",
    });
  });

  it("keeps everything that was given", () => {
    const full: TaskInput = {
      ...LEAST,
      schedule: { cron: "*/5 * * * *", timezone: "Europe/Berlin" },
      owner: "acme",
      payload: { a: 1 },
      tags: ["b", "a", "b"],
      enabled: false,
      priority: 2_097_152,
      overlap: "allow",
      catchUp: "all",
      description: "d",
      subject: "s",
      submitter: "m",
      group: "g",
    };
    expect(parseTask(full)).toEqual({ definition: { ...full, tags: ["a", "b"] }, payloadJson: '{"a":1}' });
  });

  it("shares its schedule with others that were given the same, and nobody can change it for them", () => {
    const given = { id: "t", type: "t", queue: "q" };
    const of = (schedule: object) => parseTask({ ...given, schedule }).definition.schedule as object;
    const one = of({ cron: " 0  9 * * *", except: [{ calendar: "Sun" }] });
    expect(of({ cron: " 0  9 * * *", except: [{ calendar: "Sun" }] })).toBe(one);
    expect(of({ cron: "0 9 * * *", except: [{ calendar: "Sat" }] })).not.toEqual(one);
    expect(() =>
      Object.assign((one as { except: object[] }).except[0] as object, { calendar: "Sat" }),
    ).toThrow();
  });

  it("keeps a payload of null, false and 0", () => {
    for (const payload of [null, false, 0, ""]) {
      expect(parseTask({ ...LEAST, payload })).toMatchObject({
        definition: { payload },
        payloadJson: JSON.stringify(payload),
      });
    }
  });

  const long = (n: number) => "x".repeat(n);
  const bad: [string, unknown, string, string, RegExp][] = [
    ["id missing", { ...LEAST, id: undefined }, "INVALID_NAME", "id", /string|letters/],
    ["id empty", { ...LEAST, id: "" }, "INVALID_NAME", "id", /1 to 128 letters/],
    ["id with a colon", { ...LEAST, id: "a:b" }, "INVALID_NAME", "id", /1 to 128 letters/],
    ["id with a brace", { ...LEAST, id: "a{b" }, "INVALID_NAME", "id", /1 to 128 letters/],
    ["id with a newline", { ...LEAST, id: "a\n" }, "INVALID_NAME", "id", /1 to 128 letters/],
    ["id of 100 KB", { ...LEAST, id: long(102_400) }, "INVALID_NAME", "id", /1 to 128 letters/],
    ["id a number", { ...LEAST, id: 5 }, "INVALID_NAME", "id", /not a text/],
    ["type", { ...LEAST, type: "a b" }, "INVALID_NAME", "type", /1 to 128 letters/],
    ["queue", { ...LEAST, queue: "q:q" }, "INVALID_NAME", "queue", /1 to 128 letters/],
    ["owner", { ...LEAST, owner: "a/b" }, "INVALID_NAME", "owner", /1 to 128 letters/],
    ["owner null", { ...LEAST, owner: null }, "INVALID_NAME", "owner", /not a text/],
    ["a tag", { ...LEAST, tags: ["ok", "a,b"] }, "INVALID_NAME", "tags[1]", /1 to 128 letters/],
    ["tags a string", { ...LEAST, tags: "a" }, "INVALID_NAME", "tags", /array|list/],
    [
      "33 tags",
      { ...LEAST, tags: Array.from({ length: 33 }, (_, i) => `t${i}`) },
      "INVALID_NAME",
      "tags",
      /32/,
    ],
    ["enabled", { ...LEAST, enabled: "yes" }, "INVALID_TASK", "enabled", /boolean/],
    ["priority negative", { ...LEAST, priority: -1 }, "INVALID_TASK", "priority", /0/],
    ["priority above BullMQ's", { ...LEAST, priority: 2_097_153 }, "INVALID_TASK", "priority", /2097152/],
    ["priority a fraction", { ...LEAST, priority: 1.5 }, "INVALID_TASK", "priority", /int|whole/],
    ["overlap", { ...LEAST, overlap: "maybe" }, "INVALID_TASK", "overlap", /skip.*allow/],
    ["catchUp", { ...LEAST, catchUp: "some" }, "INVALID_TASK", "catchUp", /skip.*one.*all/],
    ["description", { ...LEAST, description: long(1_025) }, "INVALID_TASK", "description", /1024/],
    ["subject", { ...LEAST, subject: long(257) }, "INVALID_TASK", "subject", /256/],
    ["submitter", { ...LEAST, submitter: long(257) }, "INVALID_TASK", "submitter", /256/],
    [
      "a control character in a text",
      { ...LEAST, subject: "mail\u001f" },
      "INVALID_TASK",
      "subject",
      /control characters/,
    ],
    ["group", { ...LEAST, group: 7 }, "INVALID_TASK", "group", /string/],
    ["payload", { ...LEAST, payload: { at: new Date(0) } }, "INVALID_PAYLOAD", "payload.at", /plain objects/],
    ["payload too large", { ...LEAST, payload: long(300_000) }, "PAYLOAD_TOO_LARGE", "payload", /reference/],
    [
      "payload with __proto__",
      { ...LEAST, payload: JSON.parse('{"__proto__":{}}') as unknown },
      "INVALID_PAYLOAD",
      "payload",
      /Rename/,
    ],
  ];
  it.each(bad)("is refused for its %s", (_what, input, code, field, message) => {
    const error = refused(input);
    expect({ code: error.code, field: error.field }).toEqual({ code, field });
    expect(error.message).toMatch(message);
    // `remedy` repeats the last sentence, for programs that show it separately.
    expect(error.remedy).toMatch(/^[A-Z].*[.?]$/s);
    expect(error.message.length).toBeLessThan(700);
    expect(error.message).not.toMatch(/[\n\0]/);
  });

  it.each([
    ["nothing", undefined],
    ["null", null],
    ["a string", "task"],
    ["a list", [LEAST]],
  ])("is refused if it is %s", (_what, input) => {
    const error = refused(input);
    expect(error.code).toBe("INVALID_TASK");
    expect(error.remedy).toMatch(/^[A-Z].*\.$/);
  });

  it("is refused for an unknown field, with the nearest known one", () => {
    const error = refused({ ...LEAST, catchup: "all" });
    expect(error).toMatchObject({ code: "INVALID_TASK", field: "catchup" });
    expect(error.remedy).toContain("catchUp");
  });

  it.each([
    [{ schedule: { cron: "* * * * *", tz: "UTC" } }, "Did you mean timezone?"],
    [{ schedule: { pattern: "* * * * *" } }, "Did you mean cron?"],
    [{ schedule: { every: "1m", startDate: "2026-01-01T00:00:00Z" } }, "Did you mean start?"],
    [{ schedule: { every: "1m", immediately: true } }, "Known: cron, calendar, "],
    [{ schedule: { any: [{ cron: "* * * * *", timeZone: "UTC" }] } }, "Did you mean timezone?"],
    [{ schedule: { cron: "* * * * *", dst: { shift: 1 } } }, "Remove it."],
    [{ retry: 3 }, "Give an object with fields: attempts, backoff, delay, max."],
    [{ attempts: 3 }, "Give retry: { attempts }."],
    [{ backoff: 1 }, "Give retry: { backoff: "],
    [{ delay: 5 }, "Give schedule: { at }, or call client.enqueue("],
    [{ retries: 3 }, "Did you mean retry?"],
    [{ jobId: "t" }, "Did you mean id?"],
    [{ rerun: "exponential" }, "Give an object with fields: delay, "],
    [{ retry: { attempt: 3 } }, "Did you mean attempts?"],
    [{ timeout: "5m" }, "Did you mean timeLimit?"],
    [{ data: {} }, "Did you mean payload?"],
    [{ alerts: ["failed"] }, "Give an object with fields: on, format, quiet, url, "],
    [{ alerts: [{ webhook: "https://example.com" }] }, "Did you mean url?"],
    [{ alerts: [{ url: "https://example.com" }] }, 'Give a list of events, such as on: ["failed"].'],
    [{ alerts: [{ on: ["failed"], url: "https://u:p@example.com/" }] }, "Put a token into the path"],
    [{ alerts: [{ on: ["failed"], url: "https://u@example.com/" }] }, "Put a token into the path"],
    [{ schedule: { every: "60000" } }, "60000ms for milliseconds"],
  ])("is refused with a replacement: %j", (wrong, remedy) => {
    expect(refused({ ...LEAST, ...wrong }).remedy).toContain(remedy);
  });

  it.each([
    [{ id: 5 }, "id: not a text. Use 1"],
    [{ id: undefined }, "id: missing. Use 1"],
    [{ overlap: "no" }, "overlap: not a known value. Use one of skip, "],
    [{ schedule: { at: new Date("x") } }, "schedule.at: an invalid Date. Write ISO 8601"],
    [{ schedule: { every: "1h", start: new Date("x") } }, "schedule.start: an invalid Date."],
  ])("is refused in one sentence: %j", (wrong, message) => {
    expect(refused({ ...LEAST, ...wrong }).message).toContain(message);
  });

  it("is refused for a __proto__ of its own", () => {
    const input = JSON.parse(
      '{"id":"t","type":"noop","queue":"q","schedule":{"every":"1s"},"__proto__":{"owner":"x"}}',
    );
    const outcome = (() => {
      try {
        return parseTask(input).definition;
      } catch (error) {
        return error as CarillonError;
      }
    })();
    // Refused or dropped, but never applied.
    if (outcome instanceof CarillonError) expect(outcome.code).toBe("INVALID_TASK");
    else expect(outcome.owner).toBe("system");
    expect(({} as Record<string, unknown>)["owner"]).toBeUndefined();
  });

  it.each<[string, unknown, string[]]>([
    ["missing", undefined, ["INVALID_SCHEDULE"]],
    ["empty", {}, ["INVALID_SCHEDULE"]],
    ["two at once", { every: "1s", cron: "* * * * *" }, ["INVALID_SCHEDULE"]],
    ["an empty cron", { cron: "" }, ["INVALID_SCHEDULE"]],
    ["a cron of blanks", { cron: "     " }, ["INVALID_SCHEDULE"]],
    ["a cron of four fields", { cron: "* * * *" }, ["INVALID_SCHEDULE"]],
    ["a cron of minute 60", { cron: "60 * * * *" }, ["INVALID_SCHEDULE"]],
    ["a cron of 100 KB", { cron: `${"0,".repeat(51_200)}0 * * * *` }, ["INVALID_SCHEDULE"]],
    ["an unknown timezone", { cron: "* * * * *", timezone: "Mars/Olympus" }, ["INVALID_TIMEZONE"]],
    ["every 0s", { every: "0s" }, ["INVALID_DURATION"]],
    ["every 0", { every: "0" }, ["INVALID_DURATION"]],
    ["every 0h0m0s", { every: "0h0m0s" }, ["INVALID_DURATION"]],
    ["every -5s", { every: "-5s" }, ["INVALID_DURATION"]],
    ["every a fraction", { every: 0.5 }, ["INVALID_DURATION"]],
    ["at no time", { at: "soon" }, ["INVALID_SCHEDULE"]],
    ["at without an offset", { at: "2026-01-01T00:00:00" }, ["INVALID_SCHEDULE"]],
    ["at NaN", { at: Number.NaN }, ["INVALID_SCHEDULE"]],
    ["at beyond time", { at: 8.65e15 }, ["INVALID_SCHEDULE"]],
  ])("is refused for its schedule: %s", (_what, schedule, codes) => {
    const error = refused({ ...LEAST, schedule });
    expect(codes).toContain(error.code);
    expect(error.field).toMatch(/^schedule/);
    expect(error.remedy).toMatch(/^[A-Z].*[.?]$/);
    expect(error.message.length).toBeLessThan(700);
  });
});
