// Takes a core for as long as its parent lives: a neighbour of what is measured.
let alive = true;
process.once("disconnect", () => {
  alive = false;
});
(function spin() {
  const end = performance.now() + 50;
  while (performance.now() < end);
  if (alive) setImmediate(spin);
})();
