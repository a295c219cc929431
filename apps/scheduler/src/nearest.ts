/** The known name that a misspelt one most likely stands for; undefined when none is close. */
export function nearest(name: string, known: readonly string[]): string | undefined {
  const ranked = known
    .map((candidate) => ({ candidate, distance: distance(name, candidate) }))
    .sort((a, b) => a.distance - b.distance);
  const best = ranked[0];
  // All names begin with CARILLON_: that alone does not make two of them alike.
  return best && best.distance <= Math.max(2, (name.length - "CARILLON_".length) / 2)
    ? best.candidate
    : undefined;
}

/** Levenshtein's, one row at a time. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const swap = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(swap, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    row = next;
  }
  return row[b.length] as number;
}
