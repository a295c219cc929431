import { join } from "node:path";
import { stateDir } from "./project.mjs";
import { onPath, run } from "./run.mjs";

const APT = "apt-get -o DPkg::Lock::Timeout=120";
const INSTALL = `${APT} install -y --no-install-recommends`;

/** Prevents a package with a service from starting it on port 6379, now and after each boot. */
const WITHOUT_SERVICE = `
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
  printf '#!/bin/sh\\nexit 101\\n' > $policy && chmod +x $policy
  trap 'rm -f $policy' EXIT
fi
${INSTALL} redis-server || exit 1
systemctl disable redis-server >/dev/null 2>&1 || true
`;

export async function installWithApt({ say, locate }) {
  if (!onPath("apt-get")) return undefined;
  const root = process.getuid?.() === 0;
  if (!root && !(await canSudo())) return "apt-get needs root, or sudo without a password.";
  const asRoot = (script) => {
    const shell = ["env", "DEBIAN_FRONTEND=noninteractive", "sh", "-c", script];
    return run(root ? shell[0] : "sudo", root ? shell.slice(1) : ["-n", ...shell], { capture: true });
  };
  say("no Redis on this machine: installing redis-tools with apt-get (no service is started)");
  // Package lists are often good enough even if some cannot be reached, so only the installation has to succeed.
  const tools = await asRoot(`${APT} update -q; ${INSTALL} redis-tools`);
  if (await locate()) return undefined;
  say("redis-tools does not bring the server here: installing redis-server, with its service off");
  const server = await asRoot(WITHOUT_SERVICE);
  return server.code === 0
    ? undefined
    : `apt-get failed: ${lastLine(server.output) || lastLine(tools.output)}`;
}

export async function installWithBrew({ say }) {
  if (!onPath("brew")) return undefined;
  say("no Redis on this machine: installing redis with brew");
  const { code, output } = await run("brew", ["install", "--quiet", "redis"], {
    capture: true,
    env: { HOMEBREW_NO_AUTO_UPDATE: "1", HOMEBREW_NO_ANALYTICS: "1" },
  });
  return code === 0 ? undefined : `brew failed: ${lastLine(output)}`;
}

/**
 * Takes the program out of the official image and runs it without Docker: tests freeze and kill their servers, which
 * does not reach a process in a container. `locate` checks whether it runs here.
 */
export async function takeFromDocker({ say }) {
  if (!onPath("docker")) return undefined;
  if (process.platform !== "linux") return "Docker's Redis runs on Linux only.";
  if ((await run("docker", ["info"], { capture: true, timeoutMs: 15_000 })).code !== 0) {
    return "docker is here, but it does not answer.";
  }
  say("no Redis on this machine: taking the program out of Docker's redis:7 image");
  const target = join(stateDir("bin"), "redis-server");
  const created = await run("docker", ["create", "--quiet", "redis:7"], { capture: true });
  const id = lastLine(created.output);
  if (created.code !== 0) return `docker create failed: ${id}`;
  const copied = await run("docker", ["cp", "-L", `${id}:/usr/local/bin/redis-server`, target], {
    capture: true,
  });
  await run("docker", ["rm", "-f", id], { capture: true });
  return copied.code === 0
    ? "Docker's redis:7 does not run on this system."
    : `docker cp failed: ${lastLine(copied.output)}`;
}

async function canSudo() {
  return Boolean(onPath("sudo")) && (await run("sudo", ["-n", "true"], { capture: true })).code === 0;
}

function lastLine(text) {
  return text.trim().split("\n").at(-1);
}
