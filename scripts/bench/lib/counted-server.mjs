// A Redis whose instructions are counted, whatever else the machine does: it runs in callgrind, some fifty times slower.
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort, redisBinary } from "@carillon/testing";
import { Redis } from "ioredis";
import { callsOf, field } from "./server.mjs";

/**
 * Functions of Redis and Lua whose instructions are counted with those that they call. The first two are found in every build; the others
 * only in one with symbols (`make REDIS_CFLAGS=-g`), which `CARILLON_REDIS_SERVER` may name.
 */
const PARTS = {
  scripts: ["luaCallFunction"],
  commands: ["scriptCall"],
  conversion: ["luaArgsToRedisArgv", "parseReply", "luaReplyToRedisReply"],
  garbage: ["luaC_step", "luaC_fullgc"],
};

export async function startCountedServer() {
  const dir = mkdtempSync(join(tmpdir(), "carillon-work-"));
  const out = join(dir, "instructions");
  const port = await freePort();
  const config = {
    ...{ port, dir, save: "", hz: 1, appendonly: "yes", appendfsync: "everysec" },
    ...{ "auto-aof-rewrite-percentage": 0, "maxmemory-policy": "noeviction" },
  };
  const child = spawn(
    "valgrind",
    [
      ...["--tool=callgrind", "--instr-atstart=no", `--callgrind-out-file=${out}`, "--compress-strings=no"],
      await redisBinary(),
      ...Object.entries(config).flatMap(([name, value]) => [`--${name}`, String(value)]),
    ],
    { stdio: "ignore" },
  );
  const ended = new Promise((resolve, reject) => {
    child.once("error", () =>
      reject(new Error("This bench needs valgrind. Install it, e.g. apt-get install valgrind.")),
    );
    child.once("exit", resolve);
  });
  const failed = ended.then((code) => {
    throw new Error(`Redis did not start in valgrind (exit code ${code}).`);
  });
  const url = `redis://127.0.0.1:${port}`;
  const admin = new Redis(url, { maxRetriesPerRequest: null });
  admin.on("error", () => {}); // until it listens
  await Promise.race([admin.ping(), failed]);
  const control = (option) =>
    execFileSync("callgrind_control", [option, String(child.pid)], { stdio: "pipe" });
  let dumps = 0;
  return {
    url,
    async version() {
      return field(await admin.info("server"), "redis_version");
    },
    /** Instructions and calls of commands during that work. */
    async count(work) {
      await admin.config("RESETSTAT");
      control("--instr=on");
      control("--zero");
      await work();
      control("--dump");
      control("--instr=off");
      const calls = sumsOf(callsOf(await admin.info("commandstats")));
      dumps += 1;
      return { ...instructionsOf(readFileSync(`${out}.${dumps}`, "utf8")), ...calls };
    },
    async stop() {
      admin.disconnect();
      child.kill("SIGKILL");
      await ended;
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** Reads a file of callgrind: a call is three lines, `cfn=` the function, `calls=`, and its line and inclusive instructions. */
function instructionsOf(text) {
  const inclusive = new Map();
  const lines = text.split("\n");
  for (const [i, line] of lines.entries()) {
    const called = /^cfn=(?:\(\d+\) ?)?([^'\s]+)$/.exec(line)?.[1];
    if (called === undefined) continue;
    const [, instructions] = (lines[i + 2] ?? "").split(" ");
    inclusive.set(called, (inclusive.get(called) ?? 0) + Number(instructions));
  }
  const parts = Object.entries(PARTS).map(([part, names]) => [
    part,
    names.reduce((sum, name) => sum + (inclusive.get(name) ?? 0), 0),
  ]);
  return { all: Number(/^(?:summary|totals): (\d+)/m.exec(text)?.[1]), ...Object.fromEntries(parts) };
}

const RUNS_A_SCRIPT = new Set(["eval", "evalsha", "fcall"]);

/** @param calls by command */
function sumsOf(calls) {
  const sum = (some) => some.reduce((total, [, n]) => total + n, 0);
  return {
    scriptCalls: sum([...calls].filter(([name]) => RUNS_A_SCRIPT.has(name))),
    commandCalls: sum([...calls]),
    byCommand: Object.fromEntries(calls),
  };
}
