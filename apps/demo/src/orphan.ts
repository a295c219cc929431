/** Loaded into each child of the demo before its program: where the demo was killed, nobody else would end it. */
const parent = process.ppid;
const watch = setInterval(() => {
  if (process.ppid === parent) return;
  clearInterval(watch);
  process.kill(process.pid, "SIGTERM");
}, 1_000);
watch.unref();
