import { existsSync } from "node:fs";
import { mkdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { CarillonError } from "@carillon/core";
import { INSTALLERS, OWN_SERVER } from "./install.js";
import { onPath, run } from "./programs.js";
import { scratchDir } from "./scratch.js";

const OLDEST = [6, 2] as const;

let found: Promise<string> | undefined;

export interface RedisBinaryOptions {
  /**
   * Installs a server if there is none: by apt or brew, without a service, or out of Docker's image (Linux). Gets a line about each
   * step. Default: nothing is installed.
   */
  readonly install?: ((step: string) => void) | undefined;
}

/**
 * The Redis server program that `startRedis` starts: `CARILLON_REDIS_SERVER`, else `redis-server` or `valkey-server` on
 * PATH, else `redis-check-rdb` under the name of the server. No running server is touched.
 *
 * @throws `REDIS_UNAVAILABLE` if there is none, or `CARILLON_REDIS_SERVER` is not one
 */
export function redisBinary({ install }: RedisBinaryOptions = {}): Promise<string> {
  found ??= find(install).catch((error: unknown) => {
    found = undefined; // may be asked again, with `install`
    throw error;
  });
  return found;
}

async function find(install: RedisBinaryOptions["install"]): Promise<string> {
  const told = process.env["CARILLON_REDIS_SERVER"];
  if (told) {
    if (await isServer(told)) return told;
    throw unavailable(`CARILLON_REDIS_SERVER=${told} is not a Redis server of version 6.2 or newer.`);
  }
  const present = await locate();
  if (present) return present;
  const failures: string[] = [];
  for (const installer of install ? INSTALLERS : []) {
    const failure = await installer(install ?? (() => {}), locate);
    const installed = await locate();
    if (installed) return installed;
    if (failure) failures.push(failure);
  }
  const what = install
    ? "No Redis server program was found, and none could be installed."
    : "No Redis server program was found.";
  const sentences = failures.map((failure) => failure.replace(/[.\s]*$/, "."));
  throw unavailable([what, ...sentences].join(" "));
}

function unavailable(what: string): CarillonError {
  return new CarillonError("REDIS_UNAVAILABLE", what, {
    remedy: "Install redis-server or valkey-server, or set CARILLON_REDIS_SERVER to its path.",
  });
}

async function locate(): Promise<string | undefined> {
  const candidates = [
    onPath("redis-server"),
    onPath("valkey-server"),
    ...(process.platform === "darwin"
      ? ["/opt/homebrew/bin/redis-server", "/usr/local/bin/redis-server"]
      : []),
  ];
  for (const file of candidates) if (file && (await isServer(file))) return file;
  const tool = onPath("redis-check-rdb") ?? onPath("valkey-check-rdb");
  const linked = tool && (await linkAsServer(tool));
  if (linked && (await isServer(linked))) return linked;
  return (await isServer(OWN_SERVER)) ? OWN_SERVER : undefined;
}

/**
 * Server and tools are one program that acts by the name under which it is called. Debian packages the tools without
 * the service, so this gives a server without one that starts on port 6379.
 */
async function linkAsServer(tool: string): Promise<string> {
  const folder = join(scratchDir(), "bin");
  const link = join(folder, "redis-server");
  await mkdir(folder, { recursive: true });
  if (!existsSync(link)) await symlink(tool, link);
  return link;
}

async function isServer(file: string): Promise<boolean> {
  if (!existsSync(file)) return false;
  const { code, output } = await run(file, ["--version"], { timeout: 10_000 });
  const [, major = 0, minor = 0] =
    /^(?:Redis|Valkey|Redict) server .*?v=(\d+)\.(\d+)/im.exec(output)?.map(Number) ?? [];
  return code === 0 && (major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1]));
}
