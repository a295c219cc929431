import { describe, expect, it } from "vitest";
import { painter, printable, table } from "../src/text.js";
import { duration, localIso, parseInstant, relative, utcIso } from "../src/times.js";

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
    "tomorrow",
    "2026-1-1",
    "1767225600000",
    "2026-13-01T00:00:00Z",
    "2026-02-30T09:00:00Z",
    "",
  ])("are not read from %j", (text) => expect(parseInstant(text)).toBeUndefined());

  it.each(["2026-01-01", "2026-01-01T01:00:00+01:00", "2026-01-01T00:00Z", "2026-01-01 00:00:00.000Z"])(
    "are read from %s",
    (text) => expect(parseInstant(text)).toBe(1_767_225_600_000),
  );
});

describe("tables", () => {
  const columns = [
    { title: "NAME", value: (row: { name: string; n: number }) => row.name },
    { title: "N", right: true, value: (row: { name: string; n: number }) => String(row.n) },
  ];
  const plain = painter({ isTTY: false }, {});

  it("are aligned, page after page, under one header", () => {
    const widths: number[] = [];
    const first = table(columns, [{ name: "longer", n: 5 }], plain, widths);
    const second = table(columns, [{ name: "a", n: 10 }], plain, widths);
    expect(first + second).toBe("NAME    N\nlonger  5\na       10\n");
  });

  it("are coloured for eyes only, and not when told so", () => {
    expect(painter({ isTTY: true }, {})("red", "x")).toBe("\u001b[31mx\u001b[0m");
    expect(painter({ isTTY: true }, { NO_COLOR: "1" })("red", "x")).toBe("x");
    expect(plain("red", "x")).toBe("x");
  });

  it("show control characters instead of obeying them", () => {
    expect(printable("a\u001b[2J\n\u009b\u202eb")).toBe("a\\u001b[2J\\n\\u009b\\u202eb");
  });
});
