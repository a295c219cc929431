import { readFile } from "node:fs/promises";
import { HTTP_OPERATIONS } from "@carillon/ops/internal";
import { Validator } from "@seriousme/openapi-schema-validator";
import { expect, test } from "vitest";
import { Conformance } from "./conformance.js";
import { ownConsole, VIEWER } from "./harness.js";

const console_ = ownConsole();

const served = async () => {
  const headers = { authorization: `Bearer ${VIEWER}` };
  const response = await console_.ask("/api/v1/openapi.json", { headers });
  expect(response.status).toBe(200);
  return (await response.json()) as { paths: Record<string, Record<string, { operationId: string }>> };
};

test("the document is valid OpenAPI 3.1", async () => {
  const validator = new Validator();
  expect(await validator.validate(await served())).toEqual({ valid: true });
  expect(validator.version).toBe("3.1");
});

test("every route is in it, with each of its methods", async () => {
  const { paths } = await served();
  const source = await readFile(new URL("../src/api/router.ts", import.meta.url), "utf8");
  const operations = new Set(HTTP_OPERATIONS.map(({ path }) => path.replace(/:(\w+)/g, "{$1}")));
  const routes = [...source.matchAll(/route\(router, (?:"(.*?)"|`(.*?)`|(task))/g)].map((match) =>
    (match[1] ?? match[2] ?? "TASK")
      .replace(/TASK|\$\{task\}/, "/tasks/:queue/:owner/:id")
      .replace(/:(\w+)/g, "{$1}"),
  );
  expect(Object.keys(paths).sort()).toEqual([...operations, ...routes].sort());
  const methods = (path: string) => Object.keys(paths[path] ?? {});
  for (const path of ["/tasks", "/tasks/{queue}/{owner}/{id}", "/runs/cancel", "/types", "/events"]) {
    // The router reports the methods of a path.
    const { status, headers } = await console_.api("PATCH", path.replace(/\{\w+\}/g, "x"));
    const allowed = headers.get("allow")?.toLowerCase().replace("head, ", "").replace(", head", "");
    expect([path, status, allowed]).toEqual([path, 405, methods(path).join(", ")]);
  }
  const ids = Object.values(paths).flatMap((path) =>
    Object.values(path).map(({ operationId }) => operationId),
  );
  expect(new Set(ids).size).toBe(ids.length);
});

test("parameters, bodies and errors are those that the API checks", async () => {
  const { paths, components } = (await served()) as unknown as Record<string, Record<string, unknown>>;
  expect(paths?.["/tasks/{queue}/{owner}/{id}/move"]).toMatchObject({
    post: {
      parameters: [{ name: "queue", in: "path" }, { name: "owner" }, { name: "id" }],
      requestBody: {
        required: true,
        content: { "application/json": { schema: { required: ["to"], additionalProperties: false } } },
      },
      responses: { "4XX": { $ref: "#/components/responses/Error" } },
    },
  });
  expect(paths?.["/runs/journal"]).toMatchObject({
    get: {
      parameters: expect.arrayContaining([
        expect.objectContaining({
          name: "limit",
          in: "query",
          schema: expect.objectContaining({ type: "integer" }),
        }),
        expect.objectContaining({ name: "outcome" }),
      ]),
    },
  });
  expect(components?.["responses"]).toMatchObject({
    Error: { description: expect.stringMatching(/^404: TASK_NOT_FOUND, /m) },
  });
});

test("the check of all answers finds undescribed ones", async () => {
  const conformance = new Conformance(await served());
  const check = (method: string, path: string, sent: unknown, status: number, body: unknown) =>
    conformance.check(method, path, sent, new Response(JSON.stringify(body), { status }));
  const CHANGED = { changed: true, holds: { tasks: 1, until: 1, running: 0, warnings: [] } };
  await check("POST", "/queues/q/pause", { note: "x" }, 200, CHANGED);
  await expect(check("POST", "/queues/q/pause", {}, 200, { ...CHANGED, changed: "yes" })).rejects.toThrow(
    /boolean/,
  );
  await expect(check("POST", "/queues/q/pause", {}, 202, CHANGED)).rejects.toThrow(/not in the/);
  await expect(check("POST", "/queues/q/pause", { notes: 1 }, 200, CHANGED)).rejects.toThrow(/NOT have/);
  await expect(check("GET", "/nothing", undefined, 404, { error: {} })).rejects.toThrow(/code/);
});
