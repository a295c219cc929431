import { bundle } from "../../scripts/lib/bundle.mjs";

await bundle(import.meta.url);
