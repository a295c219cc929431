/** Counts how often each fault struck at each point. */
export class Coverage {
  readonly #hits = new Map<string, Map<string, number>>();
  readonly #kinds = new Set<string>();

  /** Counts a point that was passed. */
  reached(point: string): void {
    this.#at(point);
  }

  hit(point: string, fault: string, times = 1): void {
    this.#kinds.add(fault);
    const faults = this.#at(point);
    faults.set(fault, (faults.get(fault) ?? 0) + times);
  }

  #at(point: string): Map<string, number> {
    let faults = this.#hits.get(point);
    if (!faults) {
      faults = new Map();
      this.#hits.set(point, faults);
    }
    return faults;
  }

  /** Points at which no fault ever struck. */
  get missed(): string[] {
    return [...this.#hits].filter(([, faults]) => faults.size === 0).map(([point]) => point);
  }

  /** Whether any fault struck at this point. */
  struck(point: string): boolean {
    return (this.#hits.get(point)?.size ?? 0) > 0;
  }

  get total(): number {
    let total = 0;
    for (const faults of this.#hits.values()) for (const times of faults.values()) total += times;
    return total;
  }

  /** A table with a line for each point and a column for each fault. */
  table(): string {
    const kinds = [...this.#kinds].sort();
    const rows = [...this.#hits].sort(([a], [b]) => (a < b ? -1 : 1));
    const width = Math.max(5, ...rows.map(([point]) => point.length));
    const line = (first: string, cells: readonly string[]) =>
      [first.padEnd(width), ...cells.map((cell, i) => cell.padStart((kinds[i] as string).length))].join("  ");
    return [
      line("point", kinds),
      ...rows.map(([point, faults]) =>
        line(
          point,
          kinds.map((kind) => String(faults.get(kind) ?? "-")),
        ),
      ),
    ].join("\n");
  }
}
