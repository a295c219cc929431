import { once } from "node:events";
import { run } from "../run.mjs";
import { api } from "./api.mjs";
import { reportWith } from "./worker.mjs";

const mailer = {
  async send(/** @type {string} */ to, /** @type {string} */ text) {
    console.log(`${text} to ${to}`);
  },
};

// One process here; the API server and the worker are usually two.
await run([reportWith(mailer)], async (client) => {
  const server = api(client).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  await fetch(`http://127.0.0.1:${port}`, { method: "POST", body: JSON.stringify({ tenant: "acme" }) });
  server.close();
});
