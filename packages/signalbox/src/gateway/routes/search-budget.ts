/**
 * What the patterns of one route may cost a call. RE2 takes linear time in the text, but each character can cost a step for every instruction of the
 * pattern's program: `(?:a?){1000}[bc]` has 17 characters, 2,000 instructions, and takes a second on the text of a prompt, on the thread that serves everybody.
 *
 * Invariants:
 * 1. A walk visits an element at most once, so a call searches with each pattern at most once. All searches of a call take at most `MAX_STEPS`.
 * 2. How much of a text is searched depends on the route alone: the same request takes the same way, whatever was searched before.
 * 3. Compiling a route is bounded, too: what is too large is noticed before the next pattern is compiled.
 */
import { RE2JS } from "re2js";

/** About 40 ns each, so a tenth of a second if a route is made to be slow. Ten patterns of usual size fit with the longest text. */
const MAX_STEPS = 2_000_000;
/** Of a longer text the beginning is searched. */
const MAX_SEARCHED = 16 * 1024;
/** All patterns of a route; leaves the first 1,000 characters of a text to search. */
const MAX_INSTRUCTIONS = 2000;
const MAX_LENGTH = 1000;
/** All counts of a pattern, added up: they make programs large, and are known before the pattern is compiled. */
const MAX_REPETITIONS = 500;
/** All conditions of a route; each is compared with a value, or with the items of a list. */
const MAX_OPERANDS = 50_000;

const REPETITION = /\{(\d+)(?:,(\d*))?\}/g;

export class SearchBudget {
  #instructions = 0;
  #operands = 0;

  /** Throws an error with a text that says what is wrong. */
  addOperands(count: number): void {
    this.#operands += count;
    if (this.#operands > MAX_OPERANDS)
      throw new Error(`the conditions of a route may have ${MAX_OPERANDS} operands in all`);
  }

  /** Throws like `addOperands`; `path` is named in the text. */
  compile(path: string, pattern: unknown, ignoresCase: boolean): RE2JS {
    if (typeof pattern !== "string" || pattern.length > MAX_LENGTH)
      throw new Error(`${path}: $regex must be text of at most ${MAX_LENGTH} characters`);
    let repetitions = 0;
    for (const [, least, most] of pattern.matchAll(REPETITION)) repetitions += Number(most || least);
    if (repetitions > MAX_REPETITIONS)
      throw new Error(`${path}: $regex: the repetitions {n} of a pattern may add up to ${MAX_REPETITIONS}`);
    const compiled = compile(path, pattern, ignoresCase);
    this.#instructions += compiled.programSize();
    if (this.#instructions > MAX_INSTRUCTIONS)
      throw new Error(
        `${path}: $regex: the patterns of a route may have ${MAX_INSTRUCTIONS} RE2 instructions in all`,
      );
    return compiled;
  }

  /** True if the pattern matches in the part of the text that may be searched. */
  isFound(pattern: RE2JS, text: string): boolean {
    const length = Math.min(MAX_SEARCHED, Math.floor(MAX_STEPS / this.#instructions));
    return pattern.matcher(text.slice(0, length)).find();
  }
}

function compile(path: string, pattern: string, ignoresCase: boolean): RE2JS {
  try {
    return RE2JS.compile(pattern, ignoresCase ? RE2JS.CASE_INSENSITIVE : 0);
  } catch (error) {
    throw new Error(`${path}: $regex is not a valid RE2 pattern: ${(error as Error).message}`, {
      cause: error,
    });
  }
}
