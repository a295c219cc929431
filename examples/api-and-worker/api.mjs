import { createServer } from "node:http";
import { json } from "node:stream/consumers";
import { CarillonError } from "@carillon/sdk";
import { report } from "./report.mjs";

/**
 * Enqueues a report for each request: `POST { "tenant": "acme" }`.
 *
 * @param {import("@carillon/sdk").Client} client
 */
export const api = (client) =>
  createServer(async (request, response) => {
    try {
      const payload = /** @type {{ tenant: string }} */ (await json(request));
      const { task } = await client.enqueue(report, payload);
      response.writeHead(202).end(JSON.stringify({ id: task.id }));
    } catch (error) {
      const status = error instanceof CarillonError ? error.statusCode : 500;
      response.writeHead(status).end(JSON.stringify({ error }));
    }
  });
