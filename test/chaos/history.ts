/** What happened in a run: faults, violations and counts. A failed run prints it. */

export interface HistoryEntry {
  /** Since the start of the run. */
  readonly atMs: number;
  readonly kind: "fault" | "violation" | "note";
  readonly text: string;
}

/** A broken rule is often broken many times; the first ones show why. Rules are told apart by the beginning of the text. */
const MAX_PER_RULE = 5;
const RULE_LENGTH = 12;

export class History {
  readonly entries: HistoryEntry[] = [];
  readonly #startedAt = performance.now();
  readonly #counts = new Map<string, number>();
  readonly #broken = new Map<string, number>();
  readonly #onViolation: (text: string) => void;
  #violations = 0;

  constructor(onViolation: (text: string) => void = () => undefined) {
    this.#onViolation = onViolation;
  }

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
    const rule = text.slice(0, RULE_LENGTH);
    const count = (this.#broken.get(rule) ?? 0) + 1;
    this.#broken.set(rule, count);
    if (count > MAX_PER_RULE) return;
    this.#add("violation", text);
    this.#onViolation(text);
  }

  count(name: string, by = 1): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + by);
  }

  /** Keeps the largest value. */
  max(name: string, value: number): void {
    this.#counts.set(name, Math.max(this.counted(name), Math.round(value)));
  }

  counted(name: string): number {
    return this.#counts.get(name) ?? 0;
  }

  get counts(): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.#counts].toSorted(([a], [b]) => a.localeCompare(b)));
  }

  /** Violations come first and once more in their place, because a long text is cut where it is shown. */
  toString(): string {
    const lines = this.entries.map(
      ({ atMs, kind, text }) => `${(atMs / 1000).toFixed(2).padStart(8)} s  ${kind.padEnd(9)}  ${text}`,
    );
    const broken = lines.filter((_, index) => this.entries[index]?.kind === "violation");
    return [...broken, "What happened:", ...lines].join("\n");
  }

  #add(kind: HistoryEntry["kind"], text: string): void {
    this.entries.push({ atMs: performance.now() - this.#startedAt, kind, text });
  }
}
