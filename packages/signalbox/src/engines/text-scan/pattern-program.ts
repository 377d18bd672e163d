/**
 * Many patterns as one program: the instructions of RE2, whose syntax and size are known to be bounded, with an alphabet in which characters
 * that no instruction tells apart are one.
 *
 * A pattern that sees through tricks also matches look-alikes of its ASCII characters, and its instructions wait while invisible characters and
 * soft breaks pass.
 */
import { RE2JS } from "re2js";
import { INVISIBLE, lookAlikesOf, SOFT_BREAK_CODE } from "./look-alikes.ts";

export interface ScanPattern {
  /** In the syntax of RE2. */
  readonly source: string;
  readonly ignoresCase: boolean;
  /** Look-alikes match, and invisible characters between two characters are passed over. */
  readonly seesThrough: boolean;
}

export class InvalidPatternError extends Error {}

/** What stands before or after a position, as far as `^`, `$` and `\b` ask. Letters and digits of all scripts with spaces are words. */
export const EDGE = 0;
const WORD = 1;
const LINE = 2;
const OTHER = 3;

/** Up to the end of Cyrillic. */
export const FIRST_CODES = 0x530;

/** Inclusive code points, sorted. */
type Ranges = readonly (readonly [number, number])[];

export type Instruction =
  | { readonly kind: "split"; readonly a: number; readonly b: number }
  | { readonly kind: "assert"; readonly flags: number; readonly out: number }
  | { readonly kind: "char"; readonly set: number; readonly out: number; readonly waits: boolean }
  | { readonly kind: "match"; readonly pattern: number }
  | { readonly kind: "fail" };

/** What RE2JS compiles a pattern to. */
interface Re2Program {
  readonly start: number;
  readonly inst: readonly {
    readonly op: number;
    readonly out: number;
    readonly arg: number;
    readonly runes: readonly number[];
  }[];
}

const ALT = 1;
const ALT_MATCH = 2;
const CAPTURE = 3;
const EMPTY_WIDTH = 4;
const MATCH = 6;
const NOP = 7;
const RUNE_ANY = 10;
const RUNE_ANY_NOT_NL = 11;
const FOLD_CASE = 1;

const BEGIN_LINE = 1;
const END_LINE = 2;
const BEGIN_TEXT = 4;
const END_TEXT = 8;
const WORD_BOUNDARY = 16;

const MAX_CODE = 0x10ffff;
const MAX_LENGTH = 1000;
const MAX_REPETITIONS = 500;
const REPETITION = /\{(\d+)(?:,(\d*))?\}/g;
const NEWLINE = 0x0a;

/** A word of the scripts that put spaces between words. */
const WORD_CHARACTER = /[\p{Lu}\p{Ll}\p{Lt}\p{Lm}\p{Nd}_]/u;
let wordRanges: Ranges | null = null;

export class PatternProgram {
  readonly instructions: Instruction[] = [];
  /** The first instruction of each pattern. */
  readonly starts: number[] = [];
  /** The number of classes of characters; the class behind the last one is the end of the text. */
  readonly classes: number;
  readonly kindOfClass: Uint8Array;
  readonly invisible: number;
  readonly softBreak: number;
  /** The classes of the first characters, which are most of those of a text. */
  readonly firstClasses = new Uint16Array(FIRST_CODES);
  /** For each set of characters: which classes are in it. */
  readonly members: readonly Uint8Array[];
  readonly #from: readonly number[];
  readonly #classOfSpan: readonly number[];

  /** Throws `InvalidPatternError`. */
  constructor(patterns: readonly ScanPattern[]) {
    const sets: Ranges[] = [];
    /** By what RE2 says of an instruction: many have the same characters. */
    const known = new Map<string, number>();
    const toSet: ToSet = (key, rangesOf) => {
      let set = known.get(key);
      if (set === undefined) {
        set = sets.push(keptRanges.get(key, () => normal(rangesOf()))) - 1;
        known.set(key, set);
      }
      return set;
    };
    patterns.forEach((pattern, i) => this.#add(pattern, i, toSet));
    const special: readonly Ranges[] = [
      words(),
      INVISIBLE,
      [[NEWLINE, NEWLINE]],
      [[SOFT_BREAK_CODE, SOFT_BREAK_CODE]],
    ];
    this.#from = toSpans([...sets, ...special]);
    this.#classOfSpan = classesOf(this.#from, [...sets, ...special]);
    const codes: number[] = [];
    this.#classOfSpan.forEach((found, i) => (codes[found] ??= this.#from[i] ?? 0));
    this.classes = codes.length;
    this.kindOfClass = Uint8Array.from([...codes, -1], (code) =>
      code === -1 ? EDGE : has(words(), code) ? WORD : code === NEWLINE ? LINE : OTHER,
    );
    this.members = sets.map((set) => {
      const members = new Uint8Array(codes.length);
      for (const span of spansIn(this.#from, set)) members[this.#classOfSpan[span] ?? 0] = 1;
      return members;
    });
    this.invisible = this.#search(0x200b);
    this.softBreak = this.#search(SOFT_BREAK_CODE);
    for (let code = 0; code < FIRST_CODES; code++) this.firstClasses[code] = this.#search(code);
  }

  classOf(code: number): number {
    return code < FIRST_CODES ? (this.firstClasses[code] ?? 0) : this.#search(code);
  }

  #search(code: number): number {
    let low = 0;
    let high = this.#from.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.#from[middle] ?? 0) <= code) low = middle;
      else high = middle - 1;
    }
    return this.#classOfSpan[low] ?? 0;
  }

  #add(pattern: ScanPattern, index: number, toSet: ToSet): void {
    const { start, inst } = compile(pattern);
    const offset = this.instructions.length;
    const { seesThrough: waits } = pattern;
    for (const { op, out, arg, runes } of inst) {
      if (op === ALT || op === ALT_MATCH)
        this.instructions.push({ kind: "split", a: out + offset, b: arg + offset });
      else if (op === CAPTURE || op === NOP)
        this.instructions.push({ kind: "split", a: out + offset, b: out + offset });
      else if (op === EMPTY_WIDTH) this.instructions.push({ kind: "assert", flags: arg, out: out + offset });
      else if (op === MATCH) this.instructions.push({ kind: "match", pattern: index });
      else if (op < 8) this.instructions.push({ kind: "fail" });
      else {
        const rangesOf = () => {
          const ranges =
            op === RUNE_ANY
              ? ANY
              : op === RUNE_ANY_NOT_NL
                ? NOT_NEWLINE
                : toRanges(runes, (arg & FOLD_CASE) !== 0);
          return waits ? withLookAlikes(ranges) : ranges;
        };
        const set = toSet(`${waits} ${op} ${arg} ${runes.join()}`, rangesOf);
        this.instructions.push({ kind: "char", set, out: out + offset, waits });
      }
    }
    this.starts.push(start + offset);
  }
}

/** Values that are made once, as long as there are not too many of them. */
class Kept<Value> {
  readonly #values = new Map<string, Value>();
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  get(key: string, create: () => Value): Value {
    let value = this.#values.get(key);
    if (value === undefined) {
      value = create();
      const [oldest] = this.#values.keys();
      if (this.#values.size >= this.#max && oldest !== undefined) this.#values.delete(oldest);
      this.#values.set(key, value);
    }
    return value;
  }
}

/** The known kinds have about eighty patterns. */
const keptPrograms = new Kept<Re2Program>(1000);
const keptRanges = new Kept<Ranges>(4000);

/** The number of a set of characters; `rangesOf` is called for a set that is new. */
type ToSet = (key: string, rangesOf: () => Ranges) => number;

const ANY: Ranges = [[0, MAX_CODE]];
const NOT_NEWLINE: Ranges = [
  [0, NEWLINE - 1],
  [NEWLINE + 1, MAX_CODE],
];

/** The program of a pattern. Those of the known kinds, and of rules that several lists have, are compiled once. */
function compile(pattern: ScanPattern): Re2Program {
  return keptPrograms.get(`${pattern.ignoresCase} ${pattern.source}`, () => compileNew(pattern));
}

/** Compiles a pattern for the programs that will contain it. Throws `InvalidPatternError`. */
export function preparePattern(pattern: ScanPattern): void {
  words();
  compile(pattern);
}

function compileNew({ source, ignoresCase }: ScanPattern): Re2Program {
  if (source.length > MAX_LENGTH * 50) throw new InvalidPatternError("the pattern is too long");
  try {
    const compiled = RE2JS.compile(source, ignoresCase ? RE2JS.CASE_INSENSITIVE : 0);
    if (compiled.matcher("").find()) throw new InvalidPatternError("the pattern matches the empty text");
    return (compiled.re2() as { readonly prog: Re2Program }).prog;
  } catch (error) {
    if (error instanceof InvalidPatternError) throw error;
    throw new InvalidPatternError(`not a valid RE2 pattern: ${(error as Error).message}`, { cause: error });
  }
}

/** Throws `InvalidPatternError` for a pattern of a user that is malformed, or whose program is too large. Returns the size of its program. */
export function checkPattern(source: string): number {
  if (source.length > MAX_LENGTH)
    throw new InvalidPatternError(`the pattern may have ${MAX_LENGTH} characters`);
  let repetitions = 0;
  for (const [, least, most] of source.matchAll(REPETITION)) repetitions += Number(most || least);
  if (repetitions > MAX_REPETITIONS)
    throw new InvalidPatternError(`the repetitions {n} of a pattern may add up to ${MAX_REPETITIONS}`);
  return compile({ source, ignoresCase: false, seesThrough: false }).inst.length;
}

/** Whether an assertion holds between two characters. */
export function holds(flags: number, before: number, after: number): boolean {
  if ((flags & BEGIN_TEXT) !== 0 && before !== EDGE) return false;
  if ((flags & END_TEXT) !== 0 && after !== EDGE) return false;
  if ((flags & BEGIN_LINE) !== 0 && before !== EDGE && before !== LINE) return false;
  if ((flags & END_LINE) !== 0 && after !== EDGE && after !== LINE) return false;
  const isBoundary = (before === WORD) !== (after === WORD);
  if ((flags & WORD_BOUNDARY) !== 0) return isBoundary;
  return (flags & 32) === 0 || !isBoundary;
}

function toRanges(runes: readonly number[], foldsCase: boolean): Ranges {
  const ranges: (readonly [number, number])[] = [];
  if (runes.length === 1) ranges.push([runes[0] ?? 0, runes[0] ?? 0]);
  else for (let i = 0; i + 1 < runes.length; i += 2) ranges.push([runes[i] ?? 0, runes[i + 1] ?? 0]);
  if (!foldsCase) return ranges;
  const [rune] = runes;
  if (runes.length !== 1 || rune === undefined) return ranges;
  const character = String.fromCodePoint(rune);
  for (const other of [character.toLowerCase(), character.toUpperCase()]) {
    const code = other.codePointAt(0);
    if (code !== undefined && other.length === String.fromCodePoint(code).length) ranges.push([code, code]);
  }
  return ranges;
}

function withLookAlikes(ranges: Ranges): Ranges {
  const all = [...ranges];
  for (const [first, last] of ranges) {
    for (let code = first; code <= last && code < 128; code++)
      for (const other of lookAlikesOf(code)) all.push([other, other]);
  }
  return all;
}

function normal(ranges: Ranges): Ranges {
  const merged: [number, number][] = [];
  for (const [first, last] of ranges.toSorted((a, b) => a[0] - b[0])) {
    const before = merged.at(-1);
    if (before !== undefined && first <= before[1] + 1) before[1] = Math.max(before[1], last);
    else merged.push([first, last]);
  }
  return merged;
}

/** Where spans of characters begin that every set contains whole or not at all. */
function toSpans(sets: readonly Ranges[]): number[] {
  const from = new Set([0, NEWLINE, NEWLINE + 1, SOFT_BREAK_CODE, SOFT_BREAK_CODE + 1]);
  for (const set of sets) {
    for (const [first, last] of set) {
      from.add(first);
      if (last < MAX_CODE) from.add(last + 1);
    }
  }
  return [...from].sort((a, b) => a - b);
}

/** The class of each span: spans that are in the same sets have one class. Takes as long as the sets have spans. */
function classesOf(spans: readonly number[], sets: readonly Ranges[]): number[] {
  const classes = spans.map(() => 0);
  let count = 1;
  for (const set of sets) {
    // What is in the set leaves its class, together with what was in that class.
    const names = new Map<number, number>();
    for (const span of spansIn(spans, set)) {
      const before = classes[span] ?? 0;
      let name = names.get(before);
      if (name === undefined) names.set(before, (name = count++));
      classes[span] = name;
    }
  }
  const numbers = new Map<number, number>();
  return classes.map((name) => {
    let number = numbers.get(name);
    if (number === undefined) numbers.set(name, (number = numbers.size));
    return number;
  });
}

/** The positions of the spans that a set contains. */
function* spansIn(spans: readonly number[], set: Ranges): Generator<number> {
  for (const [first, last] of set) {
    let low = 0;
    let high = spans.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((spans[middle] ?? 0) < first) low = middle + 1;
      else high = middle;
    }
    for (let span = low; span < spans.length && (spans[span] ?? 0) <= last; span++) yield span;
  }
}

function has(ranges: Ranges, code: number): boolean {
  let low = 0;
  let high = ranges.length - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    const [first = 0, last = 0] = ranges[middle] ?? [];
    if (code < first) high = middle - 1;
    else if (code > last) low = middle + 1;
    else return true;
  }
  return false;
}

function words(): Ranges {
  if (wordRanges === null) {
    const ranges: [number, number][] = [];
    for (let code = 0; code < 0x20000; code++) {
      if (!WORD_CHARACTER.test(String.fromCodePoint(code))) continue;
      const before = ranges.at(-1);
      if (before !== undefined && before[1] === code - 1) before[1] = code;
      else ranges.push([code, code]);
    }
    wordRanges = ranges;
  }
  return wordRanges;
}
