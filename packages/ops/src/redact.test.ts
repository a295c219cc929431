import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { redactorOf } from "./redact.js";

const hidden = "[redacted]";
const changed = "[redacted] (changed)";

describe("secrets of a payload", () => {
  it.each([
    [{ DB_PASSWORD: "x", apiKey: "x", accessToken: ["x"], client_secret: { a: 1 } }, hidden],
    [
      {
        SECRET_KEY_BASE: "x",
        passwd: 1,
        pass: "x",
        MYSQL_PWD: "x",
        "X-Api-Key": null,
        keys: [],
        Authorization: "Bearer x",
      },
      hidden,
    ],
  ])("are found by their names: %j", (payload, value) => {
    expect(redactorOf({}).shown(payload)).toEqual(
      Object.fromEntries(Object.keys(payload).map((name) => [name, value])),
    );
  });

  it.each([
    [
      { name: "DB_PASSWORD", value: "x" },
      { name: "DB_PASSWORD", value: hidden },
    ],
    ["API_KEY=x /srv/a.sh --now", `API_KEY=${hidden} /srv/a.sh --now`],
    ["mysql --password=x -u a; b", `mysql --password=${hidden} -u a; b`],
    ["mysql --password 'x y' b", `mysql --password ${hidden} b`],
    ['curl -H "Authorization: Bearer x" u', `curl -H "Authorization: Bearer ${hidden}" u`],
    ["postgres://u:x@host/db?sslmode=1", `postgres://u:${hidden}@host/db?sslmode=1`],
    ['{"client_secret": "x y"}', `{"client_secret": ${hidden}}`],
    ["https://a.example/?token=x&b=1", `https://a.example/?token=${hidden}&b=1`],
  ])("are found in lists of names, and in texts: %j", (payload, shown) => {
    expect(redactorOf({}).shown({ list: [payload] })).toEqual({ list: [shown] });
    expect(redactorOf({ redact: false }).shown({ list: [payload] })).toEqual({ list: [payload] });
  });

  it.each([
    [{ keyword: "x", monkeyBars: 1, tokenizer: "a", name: "a", value: "b", keyId: 7, bypass: 1 }],
    ["/srv/monkey.sh --keep 3"],
    ["http://host:80/a@b and the tokens of a key"],
  ])("are not %j", (payload) => {
    expect(redactorOf({}).shown({ payload })).toEqual({ payload });
  });

  it("are marked where they differ from what they replace, fields of the set's too", () => {
    const before = { iban: "a", token: "t", list: [{ key: 1 }], url: "https://u:1@h", n: 1 };
    const after = { iban: "b", token: "t", list: [{ key: 2 }, { key: 3 }], url: "https://u:2@h", n: 2 };
    expect(redactorOf({ redact: ["payload.iban"] }).shown(after, before)).toEqual({
      ...{ iban: changed, token: hidden, list: [{ key: changed }, { key: hidden }], n: 2 },
      url: `https://u:${hidden}@h (changed)`,
    });
  });

  it("that are hidden are refused by name, a text that only speaks of them is not", () => {
    const redactor = redactorOf({});
    const fields = (payload: unknown) => redactor.placeholdersIn(payload);
    fc.assert(
      fc.property(
        fc.jsonValue({ maxDepth: 3 }),
        fc.constantFrom("token", "A_KEY", "secret"),
        (inner, name) => {
          const shown = redactor.shown({ a: [{ [name]: inner }] });
          expect(fields(shown)).toEqual([`payload.a.${name}`]);
          expect(() => redactor.refuseShown(shown, "payload")).toThrow(`payload.a.${name}: [redacted] is`);
        },
      ),
    );
    expect(fields({ command: `A_KEY=${hidden} a.sh` })).toEqual(["payload.command"]);
    expect(fields({ url: `https://u:${hidden}@h (changed)` })).toEqual(["payload.url"]);
    expect(fields({ text: `He was ${hidden}, she was not.` })).toEqual([]);
  });

  it("are found in the longest texts that nearly match", () => {
    for (const part of ["secret", "key", "://a", "://a:", "a"]) {
      const text = part.repeat(40_000);
      expect(redactorOf({}).shown({ text })).toEqual({ text });
    }
  });
});
