import { agenda } from "./agenda.js";
import { crontab } from "./crontab.js";
import { kubernetes } from "./kubernetes.js";
import { pgBoss } from "./pg-boss.js";
import type { Source } from "./source.js";

/* Modules that only an import needs, loaded by it. */
export { importBullmq, readBullSchedulers, withBullmq } from "@carillon/ops/internal";
export { verifier } from "./verify.js";

/** Systems that are read from text. */
export const SOURCES = { agenda, crontab, kubernetes, "pg-boss": pgBoss } satisfies Record<string, Source>;
