// Uses a core for as long as its parent lives, as a noisy neighbour of the measurement.
let alive = true;
process.once("disconnect", () => {
  alive = false;
});
(function spin() {
  const end = performance.now() + 50;
  while (performance.now() < end);
  if (alive) setImmediate(spin);
})();
