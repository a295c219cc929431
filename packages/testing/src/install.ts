import { mkdir } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { onPath, run } from "./programs.js";

/** Installs a server, and says before it does. Returns why it could not; undefined if it does not exist here. */
type Installer = (
  say: (step: string) => void,
  locate: () => Promise<string | undefined>,
) => Promise<string | undefined>;

/** A server that was taken out of an image is kept here for the next time. */
export const OWN_SERVER = join(
  process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"),
  "carillon",
  "redis-server",
);

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

const withApt: Installer = async (say, locate) => {
  if (!onPath("apt-get")) return undefined;
  const root = process.getuid?.() === 0;
  if (!root && !(await canSudo())) return "apt-get needs root, or sudo without a password.";
  const asRoot = (script: string) => {
    const shell = ["env", "DEBIAN_FRONTEND=noninteractive", "sh", "-c", script];
    return root ? run("env", shell.slice(1)) : run("sudo", ["-n", ...shell]);
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
};

const withBrew: Installer = async (say) => {
  if (!onPath("brew")) return undefined;
  say("no Redis on this machine: installing redis with brew");
  const { code, output } = await run("brew", ["install", "--quiet", "redis"], {
    env: { HOMEBREW_NO_AUTO_UPDATE: "1", HOMEBREW_NO_ANALYTICS: "1" },
  });
  return code === 0 ? undefined : `brew failed: ${lastLine(output)}`;
};

/**
 * Takes the program out of the official image and runs it without Docker: tests freeze and kill their servers, which
 * does not reach a process in a container.
 */
const fromDocker: Installer = async (say) => {
  if (!onPath("docker")) return undefined;
  if (process.platform !== "linux") return "Docker's Redis runs on Linux only.";
  if ((await run("docker", ["info"], { timeout: 15_000 })).code !== 0)
    return "docker is here, but it does not answer.";
  say("no Redis on this machine: taking the program out of Docker's redis:7 image");
  const created = await run("docker", ["create", "--quiet", "redis:7"]);
  const id = lastLine(created.output);
  if (created.code !== 0) return `docker create failed: ${id}`;
  await mkdir(dirname(OWN_SERVER), { recursive: true });
  const copied = await run("docker", ["cp", "-L", `${id}:/usr/local/bin/redis-server`, OWN_SERVER]);
  await run("docker", ["rm", "-f", id]);
  return copied.code === 0
    ? "Docker's redis:7 does not run on this system."
    : `docker cp failed: ${lastLine(copied.output)}`;
};

export const INSTALLERS: readonly Installer[] = [withApt, withBrew, fromDocker];

async function canSudo(): Promise<boolean> {
  return Boolean(onPath("sudo")) && (await run("sudo", ["-n", "true"])).code === 0;
}

function lastLine(text: string): string {
  return text.trim().split("\n").at(-1) ?? "";
}
