import { say } from "./project.mjs";
import { onPath, run } from "./run.mjs";

const NAMES = ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"];

/**
 * The browser for tests of the pages: `CARILLON_CHROMIUM`, a browser on PATH, or one that apt-get installs. Undefined
 * if there is none.
 */
export async function chromiumBinary() {
  const found = process.env.CARILLON_CHROMIUM ?? locate();
  if (found) return found;
  if (onPath("apt-get") && process.getuid?.() === 0) {
    say("no Chromium on this machine: installing it with apt-get");
    const install =
      "apt-get -o DPkg::Lock::Timeout=120 update -q; apt-get install -y --no-install-recommends chromium";
    await run("env", ["DEBIAN_FRONTEND=noninteractive", "sh", "-c", install], { capture: true });
  }
  const installed = locate();
  if (!installed) say("no Chromium was found or could be installed: the tests of the pages are skipped");
  return installed;
}

function locate() {
  return NAMES.map(onPath).find(Boolean);
}
