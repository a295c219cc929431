import { createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import { signBody, verifySignature } from "../../src/http/index.js";
import { KEY } from "./bench.js";

const OTHER = "another key, no shorter than that";
const NOW = 1_767_258_000_999;
const BODY = '{"price":"10 €"}';
const verify = (
  header: unknown,
  keys: string | string[] = KEY,
  now = NOW,
  body: string | Uint8Array = BODY,
) => verifySignature(body, header, keys, { now });

describe("a signature", () => {
  const header = signBody(BODY, KEY, NOW);

  it("is the HMAC of time and body", () => {
    const hmac = createHmac("sha256", KEY).update(`1767258000.${BODY}`).digest("hex");
    expect(header).toBe(`t=1767258000,v1=${hmac}`);
  });

  it("is verified with the key, and with the body as text or bytes", () => {
    expect(verify(header)).toBe(true);
    expect(verify(header, KEY, NOW, Buffer.from(BODY))).toBe(true);
    expect(verify(header, KEY, NOW, `${BODY} `)).toBe(false);
    expect(verify(header, OTHER)).toBe(false);
  });

  it("is verified during a key rotation, whichever side changes first", () => {
    const both = signBody(BODY, [OTHER, KEY], NOW);
    expect(both.match(/v1=/g)).toHaveLength(2);
    expect(verify(both, KEY)).toBe(true);
    expect(verify(both, OTHER)).toBe(true);
    expect(verify(header, [OTHER, KEY])).toBe(true);
    expect(verify(both, "a third key that nobody signed with")).toBe(false);
  });

  it("is valid for five minutes, or a given time", () => {
    const signed = 1_767_258_000_000;
    expect(verify(header, KEY, signed + 300_000)).toBe(true);
    expect(verify(header, KEY, signed + 300_001)).toBe(false);
    expect(verify(header, KEY, signed - 300_000)).toBe(true);
    expect(verify(header, KEY, signed - 300_001)).toBe(false);
    expect(verifySignature(BODY, header, KEY, { now: signed + 1_000, tolerance: 999 })).toBe(false);
    expect(verifySignature(BODY, header, KEY, { now: signed, tolerance: Number.NaN })).toBe(false);
  });

  it("is valid at once by default", () => {
    expect(verifySignature("", signBody("", KEY), KEY)).toBe(true);
  });

  const hmac = header.slice(header.indexOf("v1=") + 3);
  it.each([
    ["nothing", undefined],
    ["null", null],
    ["a list", [header]],
    ["an empty text", ""],
    ["no time", `v1=${hmac}`],
    ["no signature", "t=1767258000"],
    ["two times", `t=1767258000,t=1767258000,v1=${hmac}`],
    ["a time with a fraction", `t=1767258000.0,v1=${hmac}`],
    ["a time in hex", `t=0x6955c1d0,v1=${hmac}`],
    ["a short signature", `t=1767258000,v1=${hmac.slice(2)}`],
    ["a long signature", `t=1767258000,v1=${hmac}00`],
    ["one of another version", `t=1767258000,v0=${hmac}`],
    ["too many parts", `t=1767258000,${"v2=0,".repeat(10)}v1=${hmac}`],
    ["too long a text", `${header},${" ".repeat(2_000)}`],
  ])("is invalid if the header is %s", (_, given) => {
    expect(verify(given)).toBe(false);
  });

  it.each([
    ["none", undefined],
    ["an empty list", []],
    ["an empty text", ""],
    ["a short one", "fifteen letters"],
    ["a list with a short one", [KEY, "short"]],
    ["ten", new Array(10).fill(KEY)],
  ])("needs keys: %s", (_, keys) => {
    const refused = expect.objectContaining({
      code: "INVALID_OPTION",
      message: expect.not.stringContaining("fifteen"),
    });
    expect(() => signBody(BODY, keys as string)).toThrow(refused);
    expect(() => verifySignature(BODY, header, keys as string)).toThrow(refused);
  });
});
