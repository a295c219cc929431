import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * Reads "+ pid" and "- pid" lines. When its input ends, which happens however this process dies (including
 * SIGKILL), it kills the remaining processes and removes the folder.
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
  // Detached, because Ctrl-C is sent to the whole process group, and the guard must outlive us.
  const guard = spawn("/bin/sh", ["-c", GUARD, "guard", dir], {
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
  });
  guard.unref();
  guard.stdin.on("error", () => {}); // the guard was killed, so it cannot be notified
  (guard.stdin as unknown as { unref(): void }).unref();
  scratch = { dir, guard };
  return scratch;
}

/** A folder that is deleted when this process ends. */
export function scratchDir(): string {
  return open().dir;
}

/** Kills this process when ours ends, however it ends. */
export function guardProcess(pid: number): void {
  open().guard.stdin?.write(`+ ${pid}\n`);
}

/** Stops guarding a process that has ended, because its id may be reused. */
export function releaseProcess(pid: number): void {
  open().guard.stdin?.write(`- ${pid}\n`);
}
