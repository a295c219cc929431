import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, rmSync, symlinkSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect, it, vi } from "vitest";
import { eventually, freePort } from "../src/index.js";

it("finds ports on which a server can listen", async () => {
  const port = await freePort();
  const server = createServer().listen(port, "127.0.0.1");
  await once(server, "listening");
  server.close();
});

it("gives no port twice, until the process that has it has ended", async () => {
  const port = await freePort();
  const killed = await freePort();
  const link = join(tmpdir(), "carillon-ports", String(killed));
  rmSync(link);
  symlinkSync("/no/folder", link);
  const random = vi.spyOn(Math, "random");
  for (const again of [port, killed, killed]) random.mockReturnValueOnce((again - 12_000 + 0.5) / 10_000);
  expect(await freePort()).toBe(killed);
  expect(random).toHaveBeenCalledTimes(3);
  random.mockRestore();
});

function alive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

it("leaves no server and no folder behind when its process is killed", async () => {
  const started = await startedElsewhere();
  expect(alive(started.pid)).toBe(true);

  started.child.kill("SIGKILL");

  await eventually(() => !alive(started.pid) && !existsSync(started.dir));
});

/** Starts a server in a process that uses the built package, as an application does. */
async function startedElsewhere(): Promise<{ child: ChildProcess; pid: number; dir: string }> {
  const script = fileURLToPath(new URL("./fixtures/start-redis.mjs", import.meta.url));
  const child = spawn(process.execPath, [script], { stdio: ["ignore", "pipe", "inherit"] });
  const [line] = (await once(createInterface(child.stdout), "line")) as [string];
  return { child, ...JSON.parse(line) };
}
