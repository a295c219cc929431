import { readlinkSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { say, stateDir, Trouble } from "./project.mjs";
import { installWithApt, installWithBrew, takeFromDocker } from "./redis-install.mjs";
import { onPath, run } from "./run.mjs";

const OLDEST = [6, 2];
const SERVERS = ["redis-server", "valkey-server"];
const TOOLS = ["redis-check-rdb", "valkey-check-rdb"];

/**
 * The Redis server program: `CARILLON_REDIS_SERVER`, one on PATH, or one that the package manager installs. Only
 * programs are used; no running server is touched, and none is left running.
 */
export async function redisBinary() {
  const told = process.env.CARILLON_REDIS_SERVER;
  if (told) {
    if (await isServer(told)) return told;
    throw new Trouble(
      `CARILLON_REDIS_SERVER=${told} is not a Redis server of version ${OLDEST.join(".")} or newer.`,
    );
  }
  const present = await locate();
  if (present) return present;
  // Output of an installation is shown only if all of them fail.
  const failures = [];
  for (const install of [installWithApt, installWithBrew, takeFromDocker]) {
    const failure = await install({ say, locate });
    const installed = await locate();
    if (installed) return installed;
    if (failure) failures.push(failure);
  }
  throw new Trouble(
    ["no Redis server program was found and none could be installed.", ...failures, ADVICE].join("\n  "),
  );
}

const ADVICE =
  "Install redis-server or valkey-server (6.2 or newer), or set REDIS_URL for `npm start` to a Redis of your own.";

async function locate() {
  for (const name of SERVERS) {
    const server = onPath(name);
    if (server && (await isServer(server))) return server;
  }
  for (const folder of ["/opt/homebrew/bin", "/usr/local/bin"]) {
    const server = join(folder, "redis-server");
    if (await isServer(server)) return server;
  }
  for (const name of TOOLS) {
    const tool = onPath(name);
    const link = tool && linkAsServer(tool);
    if (link && (await isServer(link))) return link;
  }
  const copied = join(stateDir("bin"), "redis-server");
  return (await isServer(copied)) ? copied : undefined;
}

/**
 * Server and tools are one program, whose behaviour depends on its name. Debian packages the tools without the service,
 * so this gives a server without a service that starts on port 6379.
 */
function linkAsServer(tool) {
  const link = join(stateDir("bin"), "redis-server");
  const target = realpathSync(tool);
  if (linkTarget(link) !== target) {
    rmSync(link, { force: true });
    symlinkSync(target, link);
  }
  return link;
}

function linkTarget(link) {
  try {
    return readlinkSync(link);
  } catch {
    return undefined;
  }
}

async function isServer(file) {
  const { code, output } = await run(file, ["--version"], { capture: true, timeoutMs: 10_000 });
  const version = /^(?:Redis|Valkey) server .*?v=(\d+)\.(\d+)/im.exec(output);
  if (code !== 0 || !version) return false;
  const [major, minor] = [Number(version[1]), Number(version[2])];
  return major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1]);
}
