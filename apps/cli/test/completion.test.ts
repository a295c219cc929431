import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { carillon } from "./helpers.js";

const script = async (shell: string) => (await carillon(["completion", shell])).stdout;

/** Bash's completions of the last word. */
async function completed(...words: string[]): Promise<string[]> {
  const ask = `COMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); _carillon; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const text = `${await script("bash")}${ask}`;
  const out = execFileSync("bash", ["-c", text, "bash", "carillon", ...words], { encoding: "utf8" });
  return out.split("\n").filter(Boolean);
}

describe("completion", () => {
  it("of bash completes commands, those within others, and options", async () => {
    expect(await completed("free")).toEqual(["freeze", "freezes"]);
    expect(await completed("queues", "p")).toEqual(["pause"]);
    expect(await completed("--json", "queues", "pause", "q", "--no")).toEqual(["--note"]);
    expect(await completed("put", "--ba")).toEqual(["--batch"]);
    expect(await completed("list", "--names")).toEqual(["--namespace"]);
    expect(await completed("nothing", "xy")).toEqual([]);
  });

  it("of each shell names each command, and is refused for others", async () => {
    const help = (await carillon(["--help"])).stdout;
    const names = [...help.matchAll(/^ {2}(?!help )([a-z][a-z-]+) /gm)].map(([, name]) => name as string);
    expect(names.length).toBeGreaterThan(40);
    for (const shell of ["bash", "zsh", "fish"]) {
      const text = await script(shell);
      for (const name of names) expect(text).toMatch(new RegExp(`\\b${name}\\b`));
    }
    expect(await carillon(["completion", "tcsh"])).toMatchObject({ code: 2, stdout: "" });
  });
});
