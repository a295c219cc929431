import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { bullAddLua, bullRemoveLua } from "./bullmq.js";
import { BOOKKEEPING } from "./task-codec.js";

/**
 * Where scripts take their time from. Production reads Redis `TIME`; only `@carillon/testing` makes another one, and
 * no option or environment variable of a node can.
 */
export interface TimeSource {
  /** Lua that defines `nowMs()` (a number) and `nowMicros()` (a string of digits). */
  readonly lua: string;
}

export const REDIS_TIME: TimeSource = {
  lua: `local time = redis.call("TIME")
local function nowMs() return time[1] * 1000 + math.floor(time[2] / 1000) end
local function nowMicros() return string.format("%.0f", time[1] * 1000000 + time[2]) end`,
};

/** Safety parts that a test can take out to see its check fail. Nothing else may. */
export type Sabotage = "fence" | "overlap-guard";

const LIBRARIES = {
  index: () => read("lib/index.lua"),
  open: () => read("lib/open.lua"),
  reopen: () => read("lib/reopen.lua"),
  job: () => read("lib/job.lua"),
  clear: () => read("lib/clear.lua"),
  reckon: () => read("lib/reckon.lua"),
  ledger: () => read("lib/ledger.lua"),
  about: () => read("lib/about.lua"),
  run: () => read("lib/run.lua"),
  each: () => read("lib/each.lua"),
  cancel: () => read("lib/cancel.lua"),
  tried: () => read("lib/tried.lua"),
  enqueue: () => `${bullAddLua()}\n${read("lib/enqueue.lua")}`,
  remove: bullRemoveLua,
  fields: () => `local BOOKKEEPING = { ${[...BOOKKEEPING].map((field) => `${field} = true`).join(", ")} }`,
} as const;

/** One Lua file a transition, and the libraries each is built on. */
const SCRIPTS = {
  commit: ["index", "open", "job", "reckon", "ledger", "enqueue", "cancel", "tried"],
  "cancel-open": ["index", "cancel"],
  "read-due": ["open", "job", "reckon"],
  put: ["index", "fields", "ledger", "tried"],
  pause: ["index"],
  resume: ["index", "ledger"],
  "enqueue-new": ["index", "open", "enqueue"],
  "read-task": ["open", "job", "reckon"],
  delete: ["index", "open"],
  "clear-runs": ["index", "job", "remove", "clear"],
  "start-run": ["index", "open", "job", "about", "run", "reopen", "tried", "each"],
  "settle-run": ["index", "open", "job", "ledger", "about", "run", "tried", "each"],
  "read-settle": ["about"],
  checkpoint: ["about"],
  "save-output": [],
  terminating: ["about"],
  "cancel-run": ["index", "about", "cancel"],
  reconcile: ["index", "open", "job", "run", "reopen", "remove", "clear"],
  "put-backfill": ["index"],
  "drop-backfill": ["index"],
  expected: ["index"],
  told: [],
  replan: ["index", "ledger", "tried"],
  audit: ["index"],
  "put-calendar": [],
  "read-time": [],
  "mark-queue": [],
  "unregister-queue": [],
  "stamp-queue": [],
} as const satisfies Record<string, readonly (keyof typeof LIBRARIES)[]>;

type ScriptName = keyof typeof SCRIPTS;

export interface Script {
  readonly name: ScriptName;
  readonly lua: string;
  readonly sha: string;
}

export type Scripts = Readonly<Record<ScriptName, Script>>;

function read(file: string): string {
  return readFileSync(new URL(`../lua/${file}`, import.meta.url), "utf8");
}

export function loadScripts(time: TimeSource = REDIS_TIME, sabotage: readonly Sabotage[] = []): Scripts {
  const switches = [
    `local FENCED = ${!sabotage.includes("fence")}`,
    `local GUARDED = ${!sabotage.includes("overlap-guard")}`,
  ].join("\n");
  const libraries = new Map<string, string>();
  const library = (name: keyof typeof LIBRARIES): string => {
    let text = libraries.get(name);
    if (text === undefined) {
      text = LIBRARIES[name]();
      libraries.set(name, text);
    }
    return text;
  };
  const entries = (Object.keys(SCRIPTS) as ScriptName[]).map((name) => {
    const own = SCRIPTS[name].map(library);
    const lua = [time.lua, name === "commit" ? switches : "", ...own, read(`${name}.lua`)].join("\n");
    return [name, { name, lua, sha: createHash("sha1").update(lua).digest("hex") }] as const;
  });
  return Object.fromEntries(entries) as unknown as Scripts;
}
