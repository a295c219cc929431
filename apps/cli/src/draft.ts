import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { misuse } from "./failure.js";
import { parseJson, readAll } from "./input.js";
import type { Io } from "./io.js";

/** A definition in the user's editor. Only the user can read its file, which stays until it is discarded. */
export class Draft {
  #file: string | undefined;

  constructor(private readonly io: Io) {}

  /** Undefined until the editor is started. */
  get file(): string | undefined {
    return this.#file;
  }

  /** @returns the saved document @throws `INVALID_OPTION` if there is no editor, or it fails; `INVALID_TASK` if it is not JSON */
  async edit(definition: unknown): Promise<unknown> {
    const { env } = this.io;
    const editor = env.VISUAL || env.EDITOR;
    if (!editor) throw misuse("EDITOR", "missing.", "Set it to your editor, or use --set FIELD=VALUE.");
    const file = join(await mkdtemp(join(tmpdir(), "carillon-")), "task.json"); // a folder that only this user can enter
    await writeFile(file, `${JSON.stringify(definition, undefined, 2)}\n`, { mode: 0o600 });
    this.#file = file;
    await run(editor, file, env);
    const hint = "Save one task as a JSON object.";
    return parseJson(await readAll(this.io, file, hint), hint);
  }

  async discard(): Promise<void> {
    if (this.#file !== undefined) await rm(dirname(this.#file), { recursive: true, force: true });
  }
}

/** Runs the editor through the shell, as git does, so that the variable may contain arguments. */
async function run(editor: string, file: string, env: NodeJS.ProcessEnv): Promise<void> {
  const child = spawn("sh", ["-c", `${editor} "$@"`, editor, file], { stdio: "inherit", env });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", resolve);
  });
  if (code !== 0) throw misuse("EDITOR", `${editor} ended with ${code}.`, "Nothing was changed.");
}
