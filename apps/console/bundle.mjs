import { bundle } from "../../scripts/lib/bundle.mjs";

// Bull Board reads the files of its pages.
await bundle(import.meta.url, { external: ["@bull-board/ui"] });
