import type { AnswerTo } from "@carillon/ops";
import { duration, relative } from "@carillon/ops/words";
import * as sdk from "@carillon/sdk/schedule";
import { describe, expect, it } from "vitest";
import { behindPace } from "../src/commands/backfill.js";
import { EXIT_HELP } from "../src/exit-codes.js";
import { type Layout, table } from "../src/table.js";
import { painter, paragraphs, printable, wrap } from "../src/text.js";
import { HERE, localIso, readInstant, shortTimes, type TimeTexts, utcIso } from "../src/times.js";

describe("texts for people", () => {
  it("are broken at spaces to fit a terminal, and elsewhere not at all", () => {
    const text = "a queue that is paused by ann, and a-word-that-is-longer-than-a-line";
    expect(wrap(text, undefined, "  ")).toBe(`  ${text}\n`);
    expect(wrap(text, 20, "  ")).toBe(
      "  a queue that is\n  paused by ann, and\n  a-word-that-is-longer-than-a-line\n",
    );
    const fact = { text, remedy: "Resume it, if the person who paused it agrees." };
    expect(paragraphs([fact, fact], 30).split("\n")).toEqual([
      "",
      "a queue that is paused by ann,",
      "and",
      "a-word-that-is-longer-than-a-line",
      "a queue that is paused by ann,",
      "and",
      "a-word-that-is-longer-than-a-line",
      "  Resume it, if the person who",
      "  paused it agrees.",
      "",
    ]);
  });

  it("of --help on exit codes fit 80 columns", () => {
    expect(EXIT_HELP.split("\n").filter((line) => line.length > 80)).toEqual([]);
  });

  it("say how far a backfill is behind its pace", () => {
    const backfill = { state: "running", every: 100, created: 1_000, total: 50, enqueued: 3, skipped: 1 };
    const behind = (now: number, more: object = {}) =>
      behindPace({ ...backfill, ...more } as AnswerTo<"backfills.get">, now);
    expect([behind(1_000), behind(1_500), behind(2_000), behind(99_000)]).toEqual([0, 0, 5, 46]);
    expect([behind(2_000, { every: 0 }), behind(2_000, { state: "done" })]).toEqual([0, 0]);
  });
});

describe("times", () => {
  const at = Date.parse("2026-07-01T12:00:00.250Z");

  it("are local ISO with the zone's offset at that time", () => {
    expect(localIso(at, "UTC")).toBe("2026-07-01T12:00:00.250+00:00");
    expect(localIso(at, "Europe/Berlin")).toBe("2026-07-01T14:00:00.250+02:00");
    expect(localIso(at, "America/St_Johns")).toBe("2026-07-01T09:30:00.250-02:30");
    expect(localIso(-1, "UTC")).toBe("1969-12-31T23:59:59.999+00:00");
  });

  it("are whole seconds in UTC without a fraction", () => {
    expect(utcIso(at - 250)).toBe("2026-07-01T12:00:00Z");
    expect(utcIso(at)).toBe("2026-07-01T12:00:00.250Z");
  });

  it("come with a distance in the two largest units", () => {
    expect(relative(at + 5_000, at)).toBe("in 5 s");
    expect(relative(at - 3_900_000, at)).toBe("1 h 5 min ago");
    expect(relative(at + 20, at)).toBe("now");
    expect(duration(26 * 3_600_000)).toBe("1 d 2 h");
    expect(duration(340)).toBe("340 ms");
  });

  it.each([
    "2026-01-01T00:00:00",
    "2026-01-01",
    "tomorrow",
    "2026-1-1",
    "1767225600000",
    "2026-13-01T00:00:00Z",
    "2026-02-30T09:00:00Z",
    "",
  ])("are not read from %j", (text) => expect(readInstant(sdk, text)).toBeUndefined());

  it.each(["2026-01-01T01:00:00+01:00", "2026-01-01T00:00Z", "2026-01-01 00:00:00.000Z"])(
    "are read from %s",
    (text) => expect(readInstant(sdk, text)).toBe(1_767_225_600_000),
  );
});

describe("tables", () => {
  const columns = [
    { title: "NAME", value: (row: { name: string; n: number }) => row.name },
    { title: "N", right: true, value: (row: { name: string; n: number }) => String(row.n) },
  ];
  const plain = painter({ isTTY: false }, {});

  it("are aligned, page after page, under one header", () => {
    const layout: Layout = {};
    const first = table(columns, [{ name: "longer", n: 5 }], { paint: plain }, layout);
    const second = table(columns, [{ name: "a", n: 10 }], { paint: plain }, layout);
    expect(first + second).toBe("NAME    N\nlonger  5\na       10\n");
  });

  it("fit a terminal: text is cut, then columns are left out, the least important first", () => {
    type Row = { id: string; type: string; means: string };
    const row = { id: "acme/nightly-report", type: "report.monthly", means: "at 03:00, on Monday to Friday" };
    const three = [
      { title: "TASK", value: ({ id }: Row) => id },
      { title: "TYPE", value: ({ type }: Row) => type, rank: 1, least: 8 },
      { title: "MEANS", value: ({ means }: Row) => means, rank: 2, least: 10 },
    ];
    const at = (width?: number) => table(three, [row], { paint: plain, width }).split("\n").slice(0, -1);
    expect(at()).toEqual(at(80));
    expect(at(66)[1]).toBe("acme/nightly-report  report.monthly  at 03:00, on Monday to Friday");
    expect(at(60)[1]).toBe("acme/nightly-report  report.monthly  at 03:00, on Monday to…");
    expect(at(45)[1]).toBe("acme/nightly-report  report.mont…  at 03:00,…");
    expect(at(40)).toEqual([
      "Left out: MEANS.",
      "TASK                 TYPE",
      "acme/nightly-report  report.monthly",
    ]);
    expect(at(20)[2]).toBe("acme/nightly-report");
    // Ids are cut last, with an ellipsis.
    expect(at(10)[2]).toBe("acme/nigh…");
    for (let width = 4; width < 80; width++) {
      for (const line of at(width)) expect(line.length).toBeLessThanOrEqual(width);
    }
  });

  it("keep the columns of the first page on later ones", () => {
    const layout: Layout = {};
    const narrow = { paint: plain, width: 12 };
    const page = (name: string) =>
      table([columns[0]!, { ...columns[1]!, rank: 1 }], [{ name, n: 5 }], narrow, layout);
    expect(page("eleven-long")).toBe("Left out: N.\nNAME\neleven-long\n");
    expect(page("b") + page("thirteen-long")).toBe("b\nthirteen-lo…\n");
    // A column with a header stays visible too.
    delete layout.widths;
    expect(page("a") + page("thirteen-long")).toBe("NAME  N\na     5\nthirteen…  5\n");
  });

  it("have short times on a terminal, and the zone once", () => {
    const now = Date.now();
    const timed = [{ title: "AT", value: (ms: number, { when }: TimeTexts) => when(ms) }];
    const [zone, title, row] = table(timed, [now], { paint: plain, width: 80 }).split("\n");
    expect(zone).toBe(`Times: ${HERE}.`);
    expect([title?.trim(), row]).toEqual(["AT", `${localIso(now).slice(11, 19)} now`]);
    expect(table(timed, [now], { paint: plain })).toContain(`${localIso(now)} (now)`);
    const noon = Date.parse(`2026-07-01T12:00:00${localIso(Date.parse("2026-07-01T12:00:00Z")).slice(19)}`);
    const { at, when } = shortTimes(noon, () => {});
    expect(at(noon + 65_000)).toBe("12:01:05");
    expect(when(noon - 13 * 3_600_000)).toBe("06-30 23:00 13 h ago");
    expect(when(noon + 3 * 86_400_000)).toBe("07-04 12:00");
    expect(when(noon + 365 * 86_400_000)).toMatch(/^2027-07-01 \d\d:00$/);
  });

  it("are coloured on terminals only, and not if switched off", () => {
    expect(painter({ isTTY: true }, {})("red", "x")).toBe("\u001b[31mx\u001b[0m");
    expect(painter({ isTTY: true }, { NO_COLOR: "1" })("red", "x")).toBe("x");
    expect(painter({ isTTY: true }, { NO_COLOR: "" })("red", "x")).not.toBe("x");
    expect(painter({ isTTY: true }, { TERM: "dumb" })("red", "x")).toBe("x");
    for (const FORCE_COLOR of ["", "1", "2", "3", "true"])
      expect(painter({}, { FORCE_COLOR, NO_COLOR: "1" })("red", "x")).toBe("\u001b[31mx\u001b[0m");
    for (const FORCE_COLOR of ["0", "false", "no"])
      expect(painter({ isTTY: true }, { FORCE_COLOR })("red", "x")).toBe("x");
    expect(plain("red", "x")).toBe("x");
  });

  it("show control characters instead of obeying them", () => {
    expect(printable("a\u001b[2J\n\u009b\u202eb")).toBe("a\\u001b[2J\\n\\u009b\\u202eb");
  });
});

it("prints a remedy once for neighbours that share it", () => {
  const facts = [
    { text: "a", remedy: "A." },
    { text: "b", remedy: "B." },
    { text: "c", remedy: "B." },
  ];
  expect(paragraphs(facts, undefined)).toBe("\na\n  A.\n\nb\nc\n  B.\n");
});
