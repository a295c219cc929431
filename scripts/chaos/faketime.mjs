// Wrong clocks: libfaketime shifts the wall clock of a running process by the offset in a file. The monotonic clock
// stays.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { say } from "../lib/project.mjs";
import { onPath, run } from "../lib/run.mjs";

const NAMES = ["libfaketimeMT.so.1", "libfaketimeMT.1.dylib"];

function folders() {
  const multiarch = existsSync("/usr/lib")
    ? readdirSync("/usr/lib").filter((name) => name.includes("-linux-"))
    : [];
  const lib = ["/usr/lib", "/usr/lib64", "/usr/local/lib", ...multiarch.map((name) => `/usr/lib/${name}`)];
  return lib.map((folder) => join(folder, "faketime"));
}

function find() {
  return folders()
    .flatMap((folder) => NAMES.map((name) => join(folder, name)))
    .find((file) => existsSync(file));
}

/** The library, installed if possible; undefined: faults of clocks cannot run. */
export async function faketimeLibrary() {
  const present = find();
  if (present || process.platform !== "linux" || !onPath("apt-get")) return present;
  say("no libfaketime on this machine: installing it with apt-get");
  const script = "apt-get update -q; apt-get install -y --no-install-recommends libfaketime";
  const asRoot = process.getuid?.() === 0 ? ["sh", "-c", script] : ["sudo", "-n", "sh", "-c", script];
  await run(asRoot[0], asRoot.slice(1), { capture: true, env: { DEBIAN_FRONTEND: "noninteractive" } });
  return find();
}

/** A wall clock with a changeable error. */
export class WrongClock {
  /** @param {string} library @param {string} file */
  constructor(library, file) {
    this.file = file;
    this.env = {
      LD_PRELOAD: library,
      FAKETIME_DONT_FAKE_MONOTONIC: "1",
      FAKETIME_TIMESTAMP_FILE: file,
      // The file is read again once a second.
      FAKETIME_CACHE_DURATION: "1",
    };
    this.offset = 0;
    this.set(0);
  }

  /** @param {number} seconds ahead of the machine's */
  set(seconds) {
    this.offset = seconds;
    // Written in one step, so that it is never read half-written.
    writeFileSync(`${this.file}.new`, `${seconds < 0 ? "-" : "+"}${Math.abs(seconds)}\n`);
    renameSync(`${this.file}.new`, this.file);
  }
}

/**
 * The environment of a Redis whose clock obeys the file. Before jemalloc is ready it asks for the time, and the library
 * for memory; with the C library's allocator instead, neither waits for the other. Undefined if that does not work
 * here.
 * @param {WrongClock} clock
 * @param {string} binary
 */
export function redisClockEnv(clock, binary) {
  const env = { ...clock.env, LD_PRELOAD: `${clock.env.LD_PRELOAD} libc.so.6` };
  const tried = spawnSync(binary, ["--version"], {
    env: { ...process.env, ...env },
    encoding: "utf8",
    timeout: 5_000,
  });
  return tried.status === 0 && /server/i.test(tried.stdout) ? env : undefined;
}
