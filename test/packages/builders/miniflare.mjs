// Serves a bundled Worker of Cloudflare in workerd.
import { Miniflare } from "miniflare";

const worker = new Miniflare({
  modules: true,
  scriptPath: "workers.mjs",
  compatibilityDate: "2026-01-01",
  bindings: { CARILLON_SIGNING_KEY: process.env.CARILLON_SIGNING_KEY },
  port: Number(process.env.PORT),
});
await worker.ready;
process.once("SIGTERM", () => worker.dispose());
