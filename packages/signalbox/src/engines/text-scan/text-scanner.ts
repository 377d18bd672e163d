/**
 * Finds the matches of an automaton in a text that arrives in pieces.
 *
 * Invariants:
 * 1. However the text is cut, the matches are the same; so is the position up to which they are known after the same characters.
 * 2. `judged` never passes the beginning of a match that is not known yet: what lies before it may leave.
 * 3. No match is longer than `MAX_MATCH`: a region that does not end is judged in halves, so that what is held is bounded.
 * 4. A text whose patterns take too many steps is given up (`isTooComplex`). This, too, does not depend on how it was cut.
 */
import { type Automaton, FLAG_BITS, FLAGS, FOUND, IDLE, type State } from "./automaton.ts";
import { readPlain } from "./plain-text.ts";

/** In UTF-16 code units. */
export const MAX_MATCH = 2048;
/** Each takes 20 to 100 ns, so that a kilobyte takes some milliseconds at worst. */
const STEPS_PER_CHARACTER = 64;
const FREE_STEPS = 200_000;
/** What is searched in one piece, in UTF-16 code units: less than a millisecond in the usual case. */
const SLICE = 32 * 1024;
/** Of the last steps of a text, as many are known. */
const KNOWN_STEPS = 2048;

export interface FoundText {
  readonly pattern: number;
  /** Positions in the whole text. */
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** A position at which no pattern has begun, and what stands before it. */
export interface IdlePlace {
  readonly at: number;
  readonly before: number;
}

/** Decides whether a match of a pattern is one, and which part of it; receives the text as a person reads it. Null when it is none. */
export type MatchCheck = (plain: string) => readonly [number, number] | null;

export class TextScanner {
  isTooComplex = false;
  readonly #automaton: Automaton;
  readonly #checks: readonly (MatchCheck | null)[];
  #state: State;
  /** What arrived and is not judged, from the beginning of the region on; what is scanned of it, and where it stands in the whole text. */
  #text = "";
  #at = 0;
  #base = 0;
  /** What stands before the region. */
  #before: number;
  /** Patterns that were found in the region. */
  #found: number[] = [];
  #matches: FoundText[] = [];
  #steps = 0;
  #length = 0;
  /** Steps that the text could take if each character took as many as patterns wait for it. */
  #spare = FREE_STEPS;
  /** The last steps, once `#spare` is used up. */
  #known: Int32Array | null = null;
  /** The rest of the text is not searched. */
  #isGivenUp = false;
  /** The region is the second part of a longer one: patterns had begun before it. */
  #isSplit = false;

  constructor(automaton: Automaton, checks: readonly (MatchCheck | null)[]) {
    this.#automaton = automaton;
    this.#checks = checks;
    this.#state = automaton.initial;
    this.#before = this.#state.before;
  }

  /** Up to here every match is known. */
  get judged(): number {
    return this.#base;
  }

  /** The matches that have become known since the last call, ordered by their beginnings. */
  takeMatches(): readonly FoundText[] {
    if (this.#matches.length === 0) return this.#matches;
    const matches = this.#matches.sort((a, b) => a.start - b.start || b.end - a.end);
    this.#matches = [];
    return matches;
  }

  /** Where the last region of what was pushed begins, if no pattern had begun there. */
  get idle(): IdlePlace | null {
    return this.#isGivenUp || this.#isSplit ? null : { at: this.#base, before: this.#before };
  }

  /**
   * `idle`: of another scanner, which has searched this text alone; the place in it. What lies between the first position at which no pattern has begun and
   * that place has only matches that the other one has found, and is not searched again.
   */
  push(text: string, idle: IdlePlace | null = null): void {
    const skipTo = this.#add(text, idle);
    this.#scan(Number.POSITIVE_INFINITY, skipTo, idle?.before);
  }

  /** The same in slices, between which other work may have its turn. */
  *pushSlices(text: string, idle: IdlePlace | null = null): Generator<void> {
    let skipTo = this.#add(text, idle);
    for (;;) {
      const base = this.#base;
      if (!this.#scan(this.#at + SLICE, skipTo, idle?.before)) return;
      skipTo -= this.#base - base;
      yield;
    }
  }

  /** Returns where the place is, in what is not judged. */
  #add(text: string, idle: IdlePlace | null): number {
    this.#length += text.length;
    if (this.#isGivenUp) {
      this.#base += text.length;
      return 0;
    }
    const start = this.#text.length;
    this.#text = start === 0 ? text : this.#text + text;
    return idle === null ? 0 : start + idle.at;
  }

  /** The text ends. Another one may follow, of which nothing matches together with this one. */
  end(): void {
    const { program } = this.#automaton;
    this.#isGivenUp = false;
    const entry = this.#automaton.step(this.#automaton.enter(this.#state), program.classes);
    if ((entry & FOUND) !== 0) this.#note(this.#automaton.states[entry >> FLAG_BITS]?.found ?? []);
    if (this.#text !== "") this.#judge(this.#text, this.#found, this.#text.length, true);
    this.#leave(this.#text.length);
    this.#state = this.#automaton.initial;
    this.#before = this.#state.before;
    this.#found = [];
    this.#isSplit = false;
  }

  /**
   * Goes on up to `limit`. Returns whether more can be scanned. `skipTo`: where to go on as soon as no pattern has begun; `skipBefore`: what stands
   * before that.
   */
  #scan(limit: number, skipTo: number, skipBefore = 0): boolean {
    const automaton = this.#automaton;
    const { program, rowBits } = automaton;
    const { ascii } = program;
    const text = this.#text;
    let id = automaton.enter(this.#state);
    let { table, waits, befores } = automaton;
    let isSplit = this.#isSplit;
    let region = 0;
    let at = this.#at;
    let spare = this.#spare;
    let before = this.#before;
    const end = Math.min(limit, text.length);
    let isWhole = true;
    for (; at < end; at++) {
      const unit = text.charCodeAt(at);
      let kind: number;
      if (unit < 128) kind = ascii[unit] as number;
      else {
        const isHigh = unit >= 0xd800 && unit <= 0xdbff;
        if (isHigh && at + 1 === text.length) {
          isWhole = false;
          break;
        }
        const code = isHigh ? (text.codePointAt(at) ?? unit) : unit;
        kind = program.classOf(code);
        if (code > 0xffff) at += 1;
      }
      spare += STEPS_PER_CHARACTER - (waits[id] as number);
      if (spare < 0 && this.#isTooMuch(automaton.states[id] ?? automaton.initial, kind, at)) {
        this.#giveUp();
        return false;
      }
      let entry = table[(id << rowBits) + kind] as number;
      if (entry === 0) {
        entry = automaton.step(id, kind);
        ({ table, waits, befores } = automaton);
      }
      id = entry >> FLAG_BITS;
      if ((entry & FLAGS) === 0) {
        if (at - region >= 2 * MAX_MATCH) {
          this.#before = before;
          region = this.#splitRegion(text.slice(region, at + 1), region);
          before = this.#before;
          isSplit = true;
        }
        continue;
      }
      if ((entry & FOUND) !== 0) this.#note(automaton.states[id]?.found ?? []);
      if ((entry & IDLE) !== 0) {
        if (this.#found.length > 0) {
          this.#before = before;
          this.#endRegion(text.slice(region, at + 1), region);
        }
        region = at + 1;
        isSplit = false;
        if (region < skipTo) {
          at = skipTo - 1;
          region = skipTo;
          id = automaton.idleBehind(skipBefore).id;
          ({ table, waits, befores } = automaton);
        }
        before = befores[id] as number;
      } else if (at - region >= 2 * MAX_MATCH) {
        this.#before = before;
        region = this.#splitRegion(text.slice(region, at + 1), region);
        before = this.#before;
        isSplit = true;
      }
    }
    this.#before = before;
    this.#isSplit = isSplit;
    this.#state = automaton.states[id] ?? automaton.initial;
    this.#at = at;
    this.#spare = spare;
    this.#leave(region);
    return isWhole && at < text.length;
  }

  /**
   * Counts a step, unless the text has taken it lately: patterns may have so many states that nearly every character leads to another one, which has
   * to be learned. Whether it was learned before does not count, so that the verdict depends on the text and the patterns alone.
   */
  #isTooMuch({ waiting, hash }: State, kind: number, at: number): boolean {
    const known = (this.#known ??= new Int32Array(KNOWN_STEPS));
    const step = Math.imul(hash ^ kind, 0x9e3779b1);
    const place = step >>> 21;
    if (known[place] === step) return false;
    known[place] = step;
    this.#steps += waiting.length;
    return this.#steps > FREE_STEPS + (this.#base + at) * STEPS_PER_CHARACTER;
  }

  #giveUp(): void {
    this.isTooComplex = true;
    this.#isGivenUp = true;
    this.#state = this.#automaton.initial;
    this.#found = [];
    this.#at = this.#text.length;
    this.#leave(this.#text.length);
  }

  #note(patterns: readonly number[]): void {
    for (const pattern of patterns) if (!this.#found.includes(pattern)) this.#found.push(pattern);
  }

  #leave(length: number): void {
    if (length === 0) return;
    this.#text = this.#text.slice(length);
    this.#at = Math.max(0, this.#at - length);
    this.#base += length;
  }

  #endRegion(text: string, offset: number): void {
    const found = this.#found;
    this.#found = [];
    this.#judge(text, found, text.length, false, offset);
  }

  /** Judges the matches that begin in the first half. Returns where the rest begins. */
  #splitRegion(text: string, offset: number): number {
    // What was found may also begin in the second half.
    const end = this.#judge(text, this.#found, MAX_MATCH, false, offset);
    let rest = Math.max(MAX_MATCH, end);
    if (isLow(text.charCodeAt(rest))) rest += 1;
    this.#before = kindAt(this.#automaton, text, rest - 1);
    return offset + rest;
  }

  /** Adds the matches that begin before `limit`. Returns the end of the last one. */
  #judge(text: string, patterns: readonly number[], limit: number, isEnd: boolean, offset = 0): number {
    let end = 0;
    const context = { before: this.#before, isEnd };
    const spend = (steps: number) => {
      this.#steps += steps;
    };
    for (const pattern of patterns) {
      const check = this.#checks[pattern] ?? null;
      for (let from = 0; from < limit;) {
        if (this.#steps > FREE_STEPS + this.#length * STEPS_PER_CHARACTER) {
          this.isTooComplex = true;
          return end;
        }
        const match = this.#automaton.findMatch(pattern, text, from, context, spend);
        if (match === null || match.start >= limit) break;
        const [start, stop] =
          check === null ? [match.start, match.end] : checked(check, text, match.start, match.end);
        if (stop <= start) {
          from = match.start + (isHighAt(text, match.start) ? 2 : 1);
          continue;
        }
        const place = this.#base + offset;
        this.#matches.push({
          pattern,
          start: place + start,
          end: place + stop,
          text: text.slice(start, stop),
        });
        end = Math.max(end, stop);
        from = stop;
      }
    }
    return end;
  }
}

function checked(check: MatchCheck, text: string, start: number, end: number): readonly [number, number] {
  const { plain, from, to } = readPlain(text.slice(start, end));
  const part = check(plain);
  if (part === null) return [0, 0];
  return [start + (from[part[0]] ?? 0), start + (to[part[1] - 1] ?? end - start)];
}

function kindAt(automaton: Automaton, text: string, at: number): number {
  const { program } = automaton;
  const unit = text.charCodeAt(at);
  const code = isLow(unit) && at > 0 ? (text.codePointAt(at - 1) ?? unit) : unit;
  return program.kindOfClass[program.classOf(code)] ?? 0;
}

function isLow(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}

function isHighAt(text: string, at: number): boolean {
  return (text.codePointAt(at) ?? 0) > 0xffff;
}
