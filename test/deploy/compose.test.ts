import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";

const root = fileURLToPath(new URL("../..", import.meta.url));
const textOf = (file: string) => readFileSync(`${root}/${file}`, "utf8");

interface Service {
  image: string;
  command: unknown[];
  environment?: Record<string, unknown>;
  healthcheck?: { test: unknown[] };
  depends_on?: Record<string, unknown>;
  volumes?: string[];
}
const compose = parse(textOf("docker-compose.yml"), { merge: true }) as {
  services: Record<string, Service>;
  volumes: object;
};
const services = Object.entries(compose.services);
const ours = services.filter(([, { image }]) => image === "carillon");

describe("docker-compose.yml", () => {
  it("has lists of texts for commands and health checks", () => {
    const lists = services.flatMap(([, { command, healthcheck }]) => [command, healthcheck?.test ?? []]);
    for (const list of lists) expect(list).toEqual(list.map(String));
  });

  it.each(ours)(
    "%s starts a program that is built, with text for each variable",
    (_, { command, environment }) => {
      const [node, program] = command as string[];
      expect(node).toBe("node");
      expect(existsSync(`${root}/${program?.replace(/dist\/(.*)\.js$/, "src/$1.ts")}`)).toBe(true);
      for (const value of Object.values(environment ?? {})) expect(value).toBeTypeOf("string");
    },
  );

  it("names existing files and services", () => {
    for (const [, { depends_on, volumes = [] }] of services) {
      for (const name of Object.keys(depends_on ?? {})) expect(Object.keys(compose.services)).toContain(name);
      for (const volume of volumes) expect(Object.keys(compose.volumes)).toContain(volume.split(":")[0]);
    }
  });

  it("checks the scheduler's health at its port", async () => {
    const { environment, healthcheck } = compose.services.scheduler as Service;
    const [way, node, flag, code] = (healthcheck?.test ?? []) as string[];
    expect([way, node, flag]).toEqual(["CMD", "node", "-e"]);
    expect(code).toContain(`127.0.0.1:${environment?.CARILLON_PORT}/ready`);
    expect(() => new Function(code as string)).not.toThrow();
  });
});

describe("Dockerfile", () => {
  it("copies existing files", () => {
    const copied = textOf("Dockerfile").matchAll(/^COPY (?!--from)(.*) \S+$/gm);
    const sources = [...copied].flatMap(([, list = ""]) => list.split(" "));
    expect(sources.length).toBeGreaterThan(5);
    for (const source of sources) expect(existsSync(`${root}/${source}`), source).toBe(true);
  });
});
