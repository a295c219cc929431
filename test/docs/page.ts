import { execFile } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const execute = promisify(execFile);
const root = fileURLToPath(new URL("../..", import.meta.url));

/** The blocks of a page in one language, also those in a list. */
export function blocksOf(page: string, language: string): string[] {
  const text = readFileSync(join(root, page), "utf8");
  return [...text.matchAll(/^( *)```(\w*)\n([\s\S]*?)^\1```/gm)].flatMap(([, , one, code = ""]) =>
    one === language ? [code] : [],
  );
}

/** A folder in which commands and programs of a page run word for word: within the repository, whose packages they import. */
export class Reader {
  readonly home: string;
  readonly #url: string;

  /** @param url the Redis that takes the place of `redis://localhost:6379` */
  constructor(name: string, url: string) {
    this.home = join(root, ".carillon", name);
    this.#url = url;
    rmSync(this.home, { recursive: true, force: true });
    this.write("package.json", '{"type":"module"}');
    // Nobody answers the question of `carillon apply` here.
    const program = join(root, "apps", "cli", "dist", "main.js");
    const shim = `#!/bin/sh\n[ "$1" = apply ] && set -- "$@" --yes\nexec "${process.execPath}" "${program}" "$@"\n`;
    chmodSync(this.write("bin/carillon", shim), 0o755);
  }

  /** @returns the path of the file */
  write(file: string, text: string): string {
    const path = join(this.home, file);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, this.#here(text));
    return path;
  }

  /** Runs commands as a shell does, until one fails. Returns what they print to stdout. */
  async run(commands: string, namespace = "carillon"): Promise<string> {
    const env = { ...this.env, CARILLON_NAMESPACE: namespace };
    const { stdout } = await execute("sh", ["-ec", this.#here(commands)], { cwd: this.home, env });
    return stdout;
  }

  get env(): NodeJS.ProcessEnv {
    const PATH = `${join(this.home, "bin")}:${process.env["PATH"]}`;
    return { ...process.env, NODE_OPTIONS: "", REDIS_URL: this.#url, PATH };
  }

  end(): void {
    rmSync(this.home, { recursive: true, force: true });
  }

  #here(text: string): string {
    return text.replaceAll("redis://localhost:6379", this.#url);
  }
}
