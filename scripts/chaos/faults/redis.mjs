// Faults of Redis itself. Each ends before the next one begins.
import { eventually } from "@carillon/testing";
import { pause } from "../../lib/nodes.mjs";
import { ask, errorCount } from "../servers.mjs";

/** A fault during which Redis refuses commands. Effective if it refused ours. */
function refusing(kind, error, inject, heal, more = {}) {
  return {
    kind,
    scope: "redis",
    ...more,
    async run({ servers, dice }) {
      const masters = await servers.masters();
      const before = await errorCount(masters, error);
      for (const master of masters) await inject(master);
      await pause(700 + dice() * 800);
      for (const master of masters) await heal(master);
      return { effective: (await errorCount(masters, error)) > before, healed: true };
    },
  };
}

/** A fault during which Redis forgets what it runs, again and again. Effective if it refused ours with that error. */
function flushing(kind, error) {
  return {
    kind,
    scope: "redis",
    async run({ servers }) {
      const masters = await servers.masters();
      const before = await errorCount(masters, error);
      for (let times = 0; times < 50; times++) {
        for (const master of masters) await ask(master, ...kind.split(" "));
        await pause(40);
      }
      return { effective: (await errorCount(masters, error)) > before, healed: true };
    },
  };
}

/** Runs a foreign script on this server. */
async function begin(master) {
  await ask(master, "CONFIG", "SET", "lua-time-limit", "50");
  ask(master, "EVAL", "while true do end", "0").catch(() => {});
}

async function end(master) {
  await ask(master, "SCRIPT", "KILL").catch((error) => {
    // A Sentinel that finds its master busy for long kills the script too.
    if (!String(error).includes("NOTBUSY")) throw error;
  });
  // The server stays busy for a moment.
  await eventually(() => ask(master, "CONFIG", "SET", "lua-time-limit", "5000"));
}

export const redisFaults = [
  {
    kind: "Redis kill -9 and restart",
    scope: "redis",
    topologies: ["single"],
    async run({ servers, dice, nodes }) {
      const { redis } = servers;
      const critical = nodes.filter((node) => !node.down && !node.frozen && node.where().critical).length;
      await redis.kill();
      await pause(dice() * 400);
      await redis.start();
      return { effective: true, note: `${critical} nodes half way`, healed: true };
    },
  },
  // The frequent scripts are functions, the others are not.
  flushing("SCRIPT FLUSH", "NOSCRIPT"),
  flushing("FUNCTION FLUSH", "ERR"),
  refusing(
    "out of memory",
    "OOM",
    (master) => ask(master, "CONFIG", "SET", "maxmemory", "1mb"),
    (master) => ask(master, "CONFIG", "SET", "maxmemory", "0"),
  ),
  refusing(
    "disk full",
    "MISCONF",
    // With the set-up of servers.mjs, no snapshot can be written.
    async (master) => {
      await ask(master, "CONFIG", "SET", "save", "900 1");
      await ask(master, "BGSAVE");
    },
    (master) => ask(master, "CONFIG", "SET", "save", ""),
    { topologies: ["single"] },
  ),
  refusing("a script that does not end", "BUSY", begin, end),
  refusing(
    "read-only replica",
    "READONLY",
    // A replica of a master that does not exist: it never copies any data.
    (master) => ask(master, "REPLICAOF", "127.0.0.1", "1"),
    (master) => ask(master, "REPLICAOF", "NO", "ONE"),
    { topologies: ["single"] },
  ),
  refusing(
    "ACL refuses scripts",
    "NOPERM",
    (master) => ask(master, "ACL", "SETUSER", "node", "-evalsha", "-eval", "-fcall"),
    (master) => ask(master, "ACL", "SETUSER", "node", "+evalsha", "+eval", "+fcall"),
  ),
];
