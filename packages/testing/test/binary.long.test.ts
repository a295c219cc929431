import { execFile } from "node:child_process";
import { chmod, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { redisBinary } from "@carillon/testing";
import { afterEach, beforeEach, expect, it } from "vitest";

const ENTRY = fileURLToPath(new URL("../dist/index.js", import.meta.url));

/** Prints what `redisBinary` answers, and each line of an installation. */
const PROGRAM = `
const { redisBinary } = await import(process.argv[1]);
const install = process.argv[2] === "install" ? (step) => console.log("step:", step) : undefined;
console.log(await redisBinary({ install }).catch((error) => error.code + ": " + error.message));
`;

let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "carillon-binary-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** Asks in a process whose PATH and cache are an empty folder. */
function ask(argument = "", env: Record<string, string> = {}): Promise<string> {
  const args = ["--input-type=module", "-e", PROGRAM, ENTRY, argument];
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      args,
      { env: { PATH: folder, XDG_CACHE_HOME: folder, ...env } },
      (error, stdout) => resolve(error ? error.message : stdout.trim()),
    );
  });
}

async function program(name: string, text: string): Promise<void> {
  await writeFile(join(folder, name), `#!/bin/sh\n${text}\n`);
  await chmod(join(folder, name), 0o755);
}

it("installs nothing unless it is told to, and says what to do", async () => {
  await program("brew", "exit 1");
  const answer = await ask();
  expect(answer).toMatch(/^REDIS_UNAVAILABLE: No Redis server program was found\..*CARILLON_REDIS_SERVER/);
});

it("installs a server by the package manager, and says so", async () => {
  const real = await redisBinary();
  await program("brew", `/bin/ln -s ${real} ${join(folder, "redis-server")}`);
  const [step, answer] = (await ask("install")).split("\n");
  expect(step).toBe("step: no Redis on this machine: installing redis with brew");
  expect(answer).toBe(join(folder, "redis-server"));
});

it("says why nothing could be installed", async () => {
  await program("brew", "echo no network\nexit 1");
  await program("docker", "exit 1");
  const answer = await ask("install");
  expect(answer).toMatch(
    /none could be installed\. brew failed: no network\. docker is here, but .*\. Install redis-server/,
  );
});

it("takes the program out of Docker's image, and keeps it", async () => {
  const real = await redisBinary();
  const copy = `case $1 in cp) /bin/ln -s ${real} "$4" ;; create) echo id ;; esac`;
  await program("docker", copy);
  expect(await ask("install")).toContain(join(folder, "carillon", "redis-server"));
  await rm(join(folder, "docker"));
  expect(await ask()).toBe(join(folder, "carillon", "redis-server"));
});

it("uses redis-check-rdb under the name of the server", async () => {
  await symlink(await redisBinary(), join(folder, "redis-check-rdb"));
  expect(await ask()).toMatch(/bin\/redis-server$/);
});

it("refuses CARILLON_REDIS_SERVER if that is not a server, or too old", async () => {
  await program("old", "echo 'Redis server v=6.0.16 sha=0'");
  const old = join(folder, "old");
  for (const told of [old, join(folder, "none")])
    expect(await ask("", { CARILLON_REDIS_SERVER: told })).toMatch(/is not a Redis server of version 6\.2/);
});
