import { existsSync } from "node:fs";
import { mkdir, symlink } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { CarillonError } from "@carillon/core";
import { scratchDir } from "./scratch.js";

let found: Promise<string> | undefined;

/**
 * The Redis server program to start: `CARILLON_REDIS_SERVER`, else `redis-server` or `valkey-server` on
 * PATH, else `redis-check-rdb` under the name of the server.
 *
 * @throws `REDIS_UNAVAILABLE` if there is none
 */
export function redisBinary(): Promise<string> {
  found ??= locate();
  return found;
}

async function locate(): Promise<string> {
  const told = process.env["CARILLON_REDIS_SERVER"];
  if (told) return told;
  const server = onPath("redis-server") ?? onPath("valkey-server");
  if (server) return server;
  const tool = onPath("redis-check-rdb") ?? onPath("valkey-check-rdb");
  if (tool) return linkAsServer(tool);
  throw new CarillonError("REDIS_UNAVAILABLE", "No Redis server program was found.", {
    remedy: "Install redis-server or valkey-server, or set CARILLON_REDIS_SERVER to its path.",
  });
}

function onPath(name: string): string | undefined {
  const folders = (process.env["PATH"] ?? "").split(delimiter).filter(Boolean);
  return folders.map((folder) => join(folder, name)).find((file) => existsSync(file));
}

/** Server and tools are one program that acts by the name under which it is called; some packages ship only the tools. */
async function linkAsServer(tool: string): Promise<string> {
  const folder = join(scratchDir(), "bin");
  const link = join(folder, "redis-server");
  await mkdir(folder, { recursive: true });
  await symlink(tool, link);
  return link;
}
