/** Loaded into each child of the demo before its program: ends the child if the demo was killed. */
const parent = process.ppid;
const watch = setInterval(() => {
  if (process.ppid === parent) return;
  clearInterval(watch);
  process.kill(process.pid, "SIGTERM");
}, 1_000);
watch.unref();
