/**
 * Runs all patterns of a program at once over a text, one step for each character, and learns its states on the way: a character costs one
 * look-up in the usual case, however many patterns there are.
 *
 * A state is idle when no pattern has begun: no match spans the position. What lies between two idle positions is a region, and can be judged on
 * its own. In a region in which patterns were found, `findMatches` finds where, leftmost first and of these the longest.
 *
 * Invariants:
 * 1. The same text takes the same states, whatever was learned before and however the text was cut.
 * 2. Every match lies within one region.
 * 3. The work of `findMatch` is counted in steps, which depend on the text and the patterns alone.
 * 4. An entry of the table is 0, which is not learned, or the row of the next state with its flags. When there are too many states, all are
 *    forgotten: the table and its states are others then (`generation`), and a state that is kept is learned again (`enter`).
 */
import { EDGE, holds, type PatternProgram } from "./pattern-program.ts";

export interface State {
  /** Where its row begins in the table. */
  readonly row: number;
  readonly generation: number;
  /** Instructions that wait for the next character. */
  readonly waiting: readonly number[];
  /** What stands before the position. */
  readonly before: number;
  /** Patterns of which a match ends before the character that led here. */
  readonly found: readonly number[];
  /** Tells states apart, nearly always; the same for the same state, however often it is learned. */
  readonly hash: number;
}

/**
 * In an entry of the table, which has the row of the next state besides: no pattern has begun; something was found; more instructions wait than a
 * character pays for.
 */
export const IDLE = 1;
export const FOUND = 2;
export const HEAVY = 4;
export const FLAGS = 7;
const FLAG_BITS = 3;
/** Each takes 20 to 100 ns, so that a kilobyte takes some milliseconds at worst. */
export const STEPS_PER_CHARACTER = 64;

export interface Match {
  readonly pattern: number;
  readonly start: number;
  readonly end: number;
}

const NONE: readonly number[] = [];
const MAX_STATES = 4000;
/** Rows of the first table; each new one has twice as many. */
const FIRST_STATES = 64;

const EMPTY: State = { row: 0, generation: -1, waiting: NONE, before: EDGE, found: NONE, hash: 0 };

export class Automaton {
  readonly program: PatternProgram;
  readonly initial: State;
  /** Row and class → entry. Numbers in one piece of memory: with objects that refer to each other a character took five times as long. */
  table: Int32Array;
  #states: State[] = [];
  readonly #rowBits: number;
  #byKey = new Map<string, State>();
  #generation = 0;
  readonly #begun: (readonly number[] | undefined)[] = [];
  readonly #firstSteps: (readonly number[] | undefined)[] = [];
  /** Visited instructions of a closure: the number of the closure that visited them last. */
  readonly #seen: Uint32Array;
  #closures = 0;

  constructor(program: PatternProgram) {
    this.program = program;
    this.#rowBits = Math.max(FLAG_BITS, 32 - Math.clz32(program.classes));
    this.table = new Int32Array(FIRST_STATES << this.#rowBits);
    this.#seen = new Uint32Array(program.instructions.length);
    this.initial = this.#intern(NONE, EDGE, NONE);
  }

  /** The row of a state that a scanner has kept. */
  enter(state: State): number {
    if (state.generation === this.#generation) return state.row;
    return this.#intern(state.waiting, state.before, state.found).row;
  }

  stateAt(row: number): State {
    return this.#states[row >> this.#rowBits] ?? this.initial;
  }

  /** No pattern has begun behind a character of that kind. */
  idleBehind(before: number): State {
    return this.#intern(NONE, before, NONE);
  }

  /** The entry of a row and a class; the class behind the last one is the end of the text. May replace the table. */
  step(row: number, kind: number): number {
    const known = this.table[row + kind] ?? 0;
    if (known !== 0) return known;
    const from = this.stateAt(row);
    const next = this.#step(from, kind);
    const { length } = next.waiting;
    const flags =
      (length === 0 ? IDLE : 0) |
      (next.found.length === 0 ? 0 : FOUND) |
      (length > STEPS_PER_CHARACTER ? HEAVY : 0);
    const entry = next.row | flags;
    if (from.generation === this.#generation) this.table[row + kind] = entry;
    return entry;
  }

  #step(state: State, kind: number): State {
    const { program } = this;
    const after = program.kindOfClass[kind] ?? EDGE;
    const found: number[] = [];
    const next = new Set<number>();
    const isPassed = kind === program.invisible || kind === program.softBreak;
    for (const at of this.#close(state.waiting, state.before, after, found)) {
      const instruction = program.instructions[at];
      if (instruction?.kind !== "char") continue;
      if (program.members[instruction.set]?.[kind] === 1) next.add(instruction.out);
      // A pattern that has begun waits; one that has not must not begin with what nobody sees.
      if (isPassed && instruction.waits) next.add(at);
    }
    for (const at of this.#firstStepsOf(state.before, kind)) next.add(at);
    const before = kind === program.invisible ? state.before : after;
    return this.#intern(
      [...next].sort((a, b) => a - b),
      before,
      found.length === 0 ? NONE : found.sort((a, b) => a - b),
    );
  }

  /** What follows where patterns begin with a character of the class. Learned once: there may be thousands of patterns. */
  #firstStepsOf(before: number, kind: number): readonly number[] {
    const { program } = this;
    return (this.#firstSteps[before * (program.classes + 1) + kind] ??= this.#startsBetween(
      before,
      program.kindOfClass[kind] ?? EDGE,
    ).flatMap((at) => {
      const instruction = program.instructions[at];
      const isTaken = instruction?.kind === "char" && program.members[instruction.set]?.[kind] === 1;
      return isTaken ? [instruction.out] : [];
    }));
  }

  /** What waits for a character at a position where any pattern may begin. */
  #startsBetween(before: number, after: number): readonly number[] {
    const key = before * 4 + after;
    return (this.#begun[key] ??= this.#close(this.program.starts, before, after, []));
  }

  /** The instructions that wait for a character, reached from `from` without one. Adds patterns that match to `found`. */
  #close(from: readonly number[], before: number, after: number, found: number[]): number[] {
    const { instructions } = this.program;
    const closure = ++this.#closures;
    const waiting: number[] = [];
    const open = [...from];
    for (let at = open.pop(); at !== undefined; at = open.pop()) {
      if (this.#seen[at] === closure) continue;
      this.#seen[at] = closure;
      const instruction = instructions[at];
      if (instruction === undefined) continue;
      if (instruction.kind === "split") open.push(instruction.a, instruction.b);
      else if (instruction.kind === "assert") {
        if (holds(instruction.flags, before, after)) open.push(instruction.out);
      } else if (instruction.kind === "char") waiting.push(at);
      else if (instruction.kind === "match" && !found.includes(instruction.pattern))
        found.push(instruction.pattern);
    }
    return waiting;
  }

  #intern(waiting: readonly number[], before: number, found: readonly number[]): State {
    const key = `${before}:${waiting.join(",")}:${found.join(",")}`;
    const known = this.#byKey.get(key);
    if (known !== undefined) return known;
    if (this.#states.length >= MAX_STATES) this.#forget();
    // An entry of 0 is not learned, so no state has the first row.
    if (this.#states.length === 0) this.#states.push(EMPTY);
    const row = this.#states.length << this.#rowBits;
    if (row >= this.table.length) {
      const table = new Int32Array(this.table.length * 2);
      table.set(this.table);
      this.table = table;
    }
    let hash = before;
    for (const at of waiting) hash = Math.imul(hash ^ at, 0x01000193) ^ (hash >>> 15);
    const state = { row, generation: this.#generation, waiting, before, found, hash };
    this.#states.push(state);
    this.#byKey.set(key, state);
    return state;
  }

  /** Scanners keep the states that they are in; all others are learned again. */
  #forget(): void {
    this.#generation += 1;
    this.#byKey = new Map();
    this.#states = [];
    this.table = new Int32Array(FIRST_STATES << this.#rowBits);
  }

  /** The first match of a pattern in `text` from `from` on, of those that begin there the longest. `spend` counts steps. */
  findMatch(
    pattern: number,
    text: string,
    from: number,
    context: { readonly before: number; readonly isEnd: boolean },
    spend: (steps: number) => void,
  ): Match | null {
    const { program } = this;
    const { instructions } = program;
    const first = program.starts[pattern] ?? 0;
    /** Instruction → where its match begins. */
    let waiting = new Map<number, number>();
    let best: Match | null = null;
    let before = from === 0 ? context.before : this.#kindBefore(text, from);
    for (let at = from; ;) {
      const code = at < text.length ? (text.codePointAt(at) ?? 0) : -1;
      const kind = code === -1 ? program.classes : program.classOf(code);
      const after = code === -1 && !context.isEnd ? 3 : (program.kindOfClass[kind] ?? EDGE);
      const reached = new Map<number, number>();
      const open: [number, number][] = [];
      if (best === null && code !== -1) open.push([first, at]);
      for (const [instruction, start] of [...waiting].toSorted((a, b) => b[1] - a[1]))
        open.push([instruction, start]);
      spend(open.length + 1);
      // The last on the stack begins first, so an instruction is reached with the earliest beginning.
      for (let top = open.pop(); top !== undefined; top = open.pop()) {
        const [index, start] = top;
        if (reached.has(index) || (best !== null && start > best.start)) continue;
        reached.set(index, start);
        const instruction = instructions[index];
        if (instruction === undefined) continue;
        if (instruction.kind === "split") open.push([instruction.b, start], [instruction.a, start]);
        else if (instruction.kind === "assert") {
          if (holds(instruction.flags, before, after)) open.push([instruction.out, start]);
        } else if (instruction.kind === "match") {
          if (best === null || start < best.start || at > best.end) best = { pattern, start, end: at };
        }
      }
      if (code === -1) return best;
      const next = new Map<number, number>();
      const isPassed = kind === program.invisible || kind === program.softBreak;
      for (const [index, start] of reached) {
        const instruction = instructions[index];
        if (instruction?.kind !== "char" || (best !== null && start > best.start)) continue;
        if (program.members[instruction.set]?.[kind] === 1) setEarliest(next, instruction.out, start);
        if (isPassed && instruction.waits && start < at) setEarliest(next, index, start);
      }
      spend(reached.size);
      waiting = next;
      if (best !== null && waiting.size === 0) return best;
      if (kind !== program.invisible) before = program.kindOfClass[kind] ?? EDGE;
      at += code > 0xffff ? 2 : 1;
    }
  }

  #kindBefore(text: string, at: number): number {
    const low = text.charCodeAt(at - 1);
    const code = low >= 0xdc00 && low <= 0xdfff && at >= 2 ? (text.codePointAt(at - 2) ?? low) : low;
    return this.program.kindOfClass[this.program.classOf(code)] ?? EDGE;
  }
}

function setEarliest(starts: Map<number, number>, index: number, start: number): void {
  const present = starts.get(index);
  if (present === undefined || start < present) starts.set(index, start);
}
