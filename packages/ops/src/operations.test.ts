import { CHANGE_KINDS } from "@carillon/sdk/internal";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { HTTP_OPERATIONS, rightsAt } from "./http.js";

describe.each(HTTP_OPERATIONS.map((one) => [one.name, one] as const))("operation %s", (_, one) => {
  const { method, operation, parts, statuses } = one;

  it("has an input field for each part of its path, and refuses unknown fields", () => {
    expect(Object.keys(operation.input.shape)).toEqual(expect.arrayContaining([...parts]));
    const parsed = operation.input.safeParse({ "no such field": 1 });
    expect(parsed.error?.issues.map(({ code }) => code)).toContain("unrecognized_keys");
  });

  it("says which kind of change it logs unless it is a GET", () => {
    expect(operation.logs !== undefined).toBe(method !== "GET");
    if (operation.logs) expect(CHANGE_KINDS).toContain(operation.logs);
  });

  it("lets no viewer change anything", () => {
    if (operation.logs) expect(operation.role).not.toBe("viewer");
  });

  it("can be described: schemas, a sentence, a status", () => {
    const options = { io: "input", unrepresentable: "any" } as const;
    expect(z.toJSONSchema(operation.input, options)).toMatchObject({ additionalProperties: false });
    if (operation.output) z.toJSONSchema(operation.output, options);
    expect(operation.summary).toMatch(/^[A-Z].*\.$/);
    expect(statuses).toEqual(operation.output ? expect.not.arrayContaining([204]) : [204]);
  });
});

it("no two operations share a method and a path", () => {
  const routes = HTTP_OPERATIONS.map(({ method, path }) => `${method} ${path.replace(/:\w+/g, ":")}`);
  expect(new Set(routes).size).toBe(routes.length);
});

it("a request that is no operation's, but at its path, opens nothing", () => {
  expect(rightsAt("GET", "/quotas")).toEqual({ noun: "quotas", role: "viewer", reach: "namespace" });
  expect(rightsAt("HEAD", "/calendars/a")).toEqual({ noun: "calendars", role: "viewer", reach: "owner" });
  expect(rightsAt("PATCH", "/calendars/a")).toEqual({ noun: "calendars", role: "admin", reach: "namespace" });
  expect(rightsAt("GET", "/Tokens/")).toEqual({ noun: "tokens", role: "admin", reach: "namespace" });
  expect(rightsAt("GET", "/tokens/a")).toEqual({ noun: "tokens", role: "admin", reach: "namespace" });
  expect(rightsAt("GET", "/quotas/a")).toEqual({ noun: "quotas", role: "viewer", reach: "namespace" });
  expect(rightsAt("GET", "/me")).toBeUndefined();
});
