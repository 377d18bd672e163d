/** What happened in a run: faults, violations and counts. A failed run prints it. */

export interface HistoryEntry {
  /** Since the start of the run. */
  readonly atMs: number;
  readonly kind: "fault" | "violation" | "note";
  readonly text: string;
}

/** A broken rule is often broken many times; the first ones show why. */
const MAX_VIOLATIONS = 50;

export class History {
  readonly entries: HistoryEntry[] = [];
  readonly #startedAt = performance.now();
  readonly #counts = new Map<string, number>();
  #violations = 0;

  get violations(): number {
    return this.#violations;
  }

  fault(text: string): void {
    this.#add("fault", text);
  }

  note(text: string): void {
    this.#add("note", text);
  }

  violation(text: string): void {
    this.#violations += 1;
    if (this.#violations <= MAX_VIOLATIONS) this.#add("violation", text);
  }

  count(name: string, by = 1): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + by);
  }

  counted(name: string): number {
    return this.#counts.get(name) ?? 0;
  }

  get counts(): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.#counts].toSorted(([a], [b]) => a.localeCompare(b)));
  }

  toString(): string {
    return this.entries
      .map(({ atMs, kind, text }) => `${(atMs / 1000).toFixed(2).padStart(8)} s  ${kind.padEnd(9)}  ${text}`)
      .join("\n");
  }

  #add(kind: HistoryEntry["kind"], text: string): void {
    this.entries.push({ atMs: performance.now() - this.#startedAt, kind, text });
  }
}
