import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * Reads "+ pid" and "- pid" lines. When its input ends, which happens however this process dies (SIGKILL
 * too), it kills what is left and removes the folder.
 */
const GUARD = `
pids=
while read -r op pid; do
  case $op in
    +) pids="$pids $pid" ;;
    -) rest=; for p in $pids; do [ "$p" = "$pid" ] || rest="$rest $p"; done; pids=$rest ;;
  esac
done
[ -z "$pids" ] || kill -9 $pids
rm -rf "$1"
`;

interface Scratch {
  readonly dir: string;
  readonly guard: ChildProcess;
}

let scratch: Scratch | undefined;

function open(): Scratch {
  if (scratch) return scratch;
  const dir = mkdtempSync(join(tmpdir(), "carillon-testing-"));
  // Detached: Ctrl-C goes to the whole process group, and the guard must outlive us to do its work.
  const guard = spawn("/bin/sh", ["-c", GUARD, "guard", dir], {
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
  });
  guard.unref();
  guard.stdin.on("error", () => {}); // the guard was killed: nothing to tell it any more
  (guard.stdin as unknown as { unref(): void }).unref();
  scratch = { dir, guard };
  return scratch;
}

/** A folder of this process, gone when the process is gone. */
export function scratchDir(): string {
  return open().dir;
}

/** Kill this process when ours ends, in whatever way. */
export function guardProcess(pid: number): void {
  open().guard.stdin?.write(`+ ${pid}\n`);
}

/** The process ended; its id may soon be another's. */
export function releaseProcess(pid: number): void {
  open().guard.stdin?.write(`- ${pid}\n`);
}
