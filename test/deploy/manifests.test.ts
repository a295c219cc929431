import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { root } from "../../scripts/lib/project.mjs";
import { onPath } from "../../scripts/lib/run.mjs";

const textOf = (file: string) => readFileSync(join(root, file), "utf8");
const UNITS = readdirSync(join(root, "deploy/systemd"));
/** Seconds that a process takes to stop: docs/deployment.md#stopping. A worker ends itself after the bound of the SDK's example. */
const STOPS_WITHIN = { node: 10, worker: 30 };

describe("deploy/kubernetes/carillon.yaml", () => {
  const manifests = parseAllDocuments(textOf("deploy/kubernetes/carillon.yaml")).map((one) => one.toJS());
  const deployment = (name: string) =>
    manifests.find((one) => one.kind === "Deployment" && one.metadata.name === `carillon-${name}`);
  const containerOf = (name: string) => deployment(name).spec.template.spec.containers[0];

  it.each(["node", "console"])("probes the %s at the port where it listens", (name) => {
    const { env, ports, livenessProbe, readinessProbe } = containerOf(name);
    const [port] = ports;
    const listens = env.find((one: { name: string }) => /^CARILLON_(CONSOLE_)?PORT$/.test(one.name));
    expect(listens.value).toBe(String(port.containerPort));
    expect(livenessProbe.httpGet).toEqual({ path: "/health", port: port.name });
    expect(readinessProbe.httpGet).toEqual({ path: "/ready", port: port.name });
  });

  it.each(Object.entries(STOPS_WITHIN))(
    "leaves the %s more time than it takes to stop, %i s",
    (name, within) => {
      expect(deployment(name).spec.template.spec.terminationGracePeriodSeconds).toBeGreaterThan(within);
    },
  );

  it("names programs that exist, and variables that they read", () => {
    for (const name of ["node", "console"]) {
      const { args, env } = containerOf(name);
      const app = args[1].split("/")[1];
      expect(textOf(args[1].replace(/dist\/(.*)\.js$/, "src/$1.ts"))).not.toBe("");
      for (const one of env) expect(textOf(`apps/${app}/README.md`), one.name).toContain(`\`${one.name}\``);
    }
  });

  it("scales workers by a metric that nodes have", () => {
    const { spec } = manifests.find((one) => one.kind === "HorizontalPodAutoscaler");
    const [{ external }] = spec.metrics;
    expect(textOf("apps/scheduler/README.md")).toContain(`\`${external.metric.name}{queue}\``);
    expect(spec.scaleTargetRef.name).toBe(deployment("worker").metadata.name);
  });
});

describe("deploy/systemd", () => {
  it.each(Object.entries(STOPS_WITHIN))(
    "leaves the %s more time than it takes to stop, %i s",
    (name, within) => {
      const [, seconds] =
        /^TimeoutStopSec=(\d+)$/m.exec(textOf(`deploy/systemd/carillon-${name}.service`)) ?? [];
      expect(Number(seconds)).toBeGreaterThan(within);
    },
  );

  it.skipIf(!onPath("systemd-analyze"))(
    "has units in which systemd-analyze verify finds nothing",
    async () => {
      const folder = mkdtempSync(join(tmpdir(), "carillon-units-"));
      try {
        const files = UNITS.map((name) => {
          const file = join(folder, name);
          // The programs need not be installed here.
          writeFileSync(
            file,
            textOf(`deploy/systemd/${name}`).replace(/^ExecStart=\S+/m, "ExecStart=/bin/true"),
          );
          return file;
        });
        expect(files.length).toBe(3);
        // It also complains of the machine, in a container for instance.
        const verify = promisify(execFile)("systemd-analyze", ["verify", "--man=no", ...files]);
        const { stdout, stderr } = await verify.catch((error: { stdout: string; stderr: string }) => error);
        expect(`${stdout}${stderr}`.split("\n").filter((line) => line.includes("carillon-"))).toEqual([]);
      } finally {
        rmSync(folder, { recursive: true });
      }
    },
  );
});
