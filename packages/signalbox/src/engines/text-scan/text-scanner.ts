/**
 * Finds the matches of an automaton in a text that arrives in pieces.
 *
 * Invariants:
 * 1. However the text is cut, the matches are the same; so is the position up to which they are known after the same characters.
 * 2. `judged` never passes the beginning of a match that is not known yet: what lies before it may leave.
 * 3. No match is longer than `MAX_MATCH`: a region that does not end is judged in halves, so that what is held is bounded.
 * 4. A text whose patterns take too many steps is given up (`isTooComplex`). This, too, does not depend on how it was cut.
 */
import { type Automaton, FLAGS, FOUND, HEAVY, IDLE, type State, STEPS_PER_CHARACTER } from "./automaton.ts";
import { FIRST_CODES } from "./pattern-program.ts";
import { readPlain } from "./plain-text.ts";

/** In UTF-16 code units. */
export const MAX_MATCH = 2048;
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
  /** Steps that the text could take, where more patterns wait than a character pays for. */
  #heavySteps = 0;
  /** The last of them, once they are too many. */
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
    if (text.length < SLICE) {
      this.#scan(this.#add(text, idle), idle?.before);
      return;
    }
    const slices = this.pushSlices(text, idle);
    while (slices.next().done !== true);
  }

  /** The same in slices, between which other work may have its turn. */
  *pushSlices(text: string, idle: IdlePlace | null = null): Generator<void> {
    let skipTo = this.#add(text, idle);
    for (;;) {
      const base = this.#base;
      if (!this.#scan(skipTo, idle?.before)) return;
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
    if ((entry & FOUND) !== 0) this.#note(this.#automaton.stateAt(entry).found);
    if (this.#text !== "") this.#judge(this.#text, this.#found, this.#text.length, true);
    this.#leave(this.#text.length);
    this.#state = this.#automaton.initial;
    this.#before = this.#state.before;
    this.#found = [];
    this.#isSplit = false;
  }

  /**
   * Scans a slice. Returns whether more can be scanned. `skipTo`: where to go on as soon as no pattern has begun; `skipBefore`: what stands
   * before that.
   */
  #scan(skipTo: number, skipBefore = 0): boolean {
    const automaton = this.#automaton;
    const { program } = automaton;
    const { firstClasses } = program;
    const text = this.#text;
    const first = this.#at;
    const count = unitsOf(text, first);
    let { table } = automaton;
    let row = automaton.enter(this.#state);
    let flags = this.#state.waiting.length > STEPS_PER_CHARACTER ? HEAVY : 0;
    let isSplit = this.#isSplit;
    let region = 0;
    /** The row in which the region began; -1 if `#before` is up to date. */
    let regionRow = -1;
    /** A region that goes on behind it is split. */
    let splitAt = 2 * MAX_MATCH;
    let at = first;
    const end = first + count;
    let isWhole = true;
    for (; at < end; at++) {
      if ((flags & HEAVY) === 0 && region >= skipTo && this.#found.length === 0) {
        at = first + takePlainSteps(at - first, count, row, region - first, table, firstClasses);
        row = REACHED[ROW] as number;
        if (REACHED[REGION_ROW] !== -1) {
          region = first + (REACHED[REGION] as number);
          regionRow = REACHED[REGION_ROW] as number;
          splitAt = region + 2 * MAX_MATCH;
          isSplit = false;
        }
        flags = 0;
        if (at >= end) break;
      }
      const unit = UNITS[at - first] as number;
      let kind: number;
      if (unit < FIRST_CODES) kind = firstClasses[unit] as number;
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
      if ((flags & HEAVY) !== 0 && this.#isTooMuch(automaton.stateAt(row), kind, at)) {
        this.#giveUp();
        return false;
      }
      let entry = table[row + kind] as number;
      if (entry === 0) {
        // Rows are others when the automaton has forgotten its states.
        if (regionRow !== -1) this.#before = automaton.stateAt(regionRow).before;
        regionRow = -1;
        entry = automaton.step(row, kind);
        ({ table } = automaton);
      }
      flags = entry & FLAGS;
      row = entry - flags;
      if (flags === 0 && at < splitAt) continue;
      if ((flags & FOUND) !== 0) this.#note(automaton.stateAt(row).found);
      if ((flags & IDLE) !== 0) {
        if (this.#found.length > 0) {
          if (regionRow !== -1) this.#before = automaton.stateAt(regionRow).before;
          this.#endRegion(text.slice(region, at + 1), region);
        }
        region = at + 1;
        isSplit = false;
        if (region < skipTo) {
          at = skipTo - 1;
          region = skipTo;
          row = automaton.enter(automaton.idleBehind(skipBefore));
          ({ table } = automaton);
        }
        regionRow = row;
        splitAt = region + 2 * MAX_MATCH;
      } else if (at >= splitAt) {
        if (regionRow !== -1) this.#before = automaton.stateAt(regionRow).before;
        regionRow = -1;
        region = this.#splitRegion(text.slice(region, at + 1), region);
        splitAt = region + 2 * MAX_MATCH;
        isSplit = true;
      }
    }
    if (regionRow !== -1) this.#before = automaton.stateAt(regionRow).before;
    this.#isSplit = isSplit;
    this.#state = automaton.stateAt(row);
    this.#at = at;
    this.#leave(region);
    return isWhole && at < text.length;
  }

  /**
   * Counts a step for which more patterns wait than a character pays for. When all of these together are too many, those count that the text has not
   * taken lately: patterns may have so many states that nearly every character leads to another one, which has to be learned. Whether it was learned
   * before does not count, so that the verdict depends on the text and the patterns alone.
   */
  #isTooMuch({ waiting, hash }: State, kind: number, at: number): boolean {
    const paid = FREE_STEPS + (this.#base + at) * STEPS_PER_CHARACTER;
    this.#heavySteps += waiting.length;
    if (this.#heavySteps <= paid) return false;
    const known = (this.#known ??= new Int32Array(KNOWN_STEPS));
    const step = Math.imul(hash ^ kind, 0x9e3779b1);
    const place = step >>> 21;
    if (known[place] === step) return false;
    known[place] = step;
    this.#steps += waiting.length;
    return this.#steps > paid;
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

/**
 * What is searched next, as numbers: a text that is a part of another one is slow to read character by character. All scanners share it, because none
 * waits while it scans.
 */
const UNITS = new Uint16Array(SLICE);
const UNIT_BYTES = Buffer.from(UNITS.buffer);
/** Where `takePlainSteps` has come: the row, the last idle position and its row, which is -1 if there was none. */
const REACHED = new Int32Array(3);
const ROW = 0;
const REGION = 1;
const REGION_ROW = 2;

/**
 * Takes the steps with which nothing else has to be done, and stops before the first other one. It calls nothing, so that all it has is in registers:
 * a third of the time of a loop that does everything. Returns the position.
 */
function takePlainSteps(
  from: number,
  to: number,
  firstRow: number,
  regionAt: number,
  table: Int32Array,
  firstClasses: Uint16Array,
): number {
  let at = from;
  let row = firstRow;
  let region = regionAt;
  let regionRow = -1;
  for (; at < to; at++) {
    const unit = UNITS[at] as number;
    if (unit >= FIRST_CODES) break;
    const entry = table[row + (firstClasses[unit] as number)] as number;
    const flags = entry & FLAGS;
    if (flags === 0) {
      if (entry === 0 || at - region >= 2 * MAX_MATCH) break;
      row = entry;
    } else if (flags === IDLE) {
      row = entry - IDLE;
      region = at + 1;
      regionRow = row;
    } else break;
  }
  REACHED[ROW] = row;
  REACHED[REGION] = region;
  REACHED[REGION_ROW] = regionRow;
  return at;
}

/** Shorter texts are copied faster one by one. */
const SHORT = 48;

/** Fills `UNITS` from a position on. Returns how many there are. */
function unitsOf(text: string, first: number): number {
  const count = Math.min(SLICE, text.length - first);
  if (count < SHORT) for (let i = 0; i < count; i++) UNITS[i] = text.charCodeAt(first + i);
  else
    UNIT_BYTES.write(
      first === 0 && count === text.length ? text : text.slice(first, first + count),
      "utf16le",
    );
  return count;
}

function isLow(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}

function isHighAt(text: string, at: number): boolean {
  return (text.codePointAt(at) ?? 0) > 0xffff;
}
