/**
 * Time-ordered ids of 26 characters (ULID). Rows with such keys are appended at the end of an index, which makes inserts into tables of
 * millions of rows several times faster than random keys.
 *
 * Invariants:
 * 1. No two ids are equal.
 * 2. The ids of one process are strictly increasing, also within a millisecond and after the clock is set back by up to `MAX_LEAD_MS`.
 * 3. The time of an id is at most `MAX_LEAD_MS` ahead of the clock. After the clock is set back by more, new ids use the earlier time and are
 *    not greater than the ids before: rows are stored and expire by the time of their ids, which must not stay wrong for hours.
 * See docs/decisions/0077.
 */
import { randomFillSync } from "node:crypto";

const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const RANDOM_DIGITS = 16;
const ULID = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/;

/** More than the usual time corrections, and too little to be noticed in a list. */
const MAX_LEAD_MS = 10_000;

let lastTime = -1;
const digits = new Uint8Array(RANDOM_DIGITS);
/** Random bytes for many ids: one call per id would cost more than the rest. */
const random = new Uint8Array(RANDOM_DIGITS * 256);
let randomAt = random.length;

export function ulid(now: number = Date.now()): string {
  if (now > lastTime || now < lastTime - MAX_LEAD_MS) {
    lastTime = now;
    // New random digits: after the clock was set back, ids of this millisecond may already exist.
    if (randomAt === random.length) {
      randomFillSync(random);
      randomAt = 0;
    }
    for (let i = 0; i < RANDOM_DIGITS; i++) digits[i] = (random[randomAt++] ?? 0) & 31;
    // A zero first digit leaves room for 32^15 increments within one millisecond.
    digits[0] = 0;
  } else {
    increment();
  }
  return encodeTime(lastTime) + encodeDigits();
}

export function isUlid(text: string): boolean {
  return ULID.test(text);
}

/** Returns the smallest id of a time, for ranges of ids. */
export function ulidFloor(time: number): string {
  return encodeTime(time) + "0".repeat(RANDOM_DIGITS);
}

export function ulidTime(id: string): number {
  let time = 0;
  for (let i = 0; i < 10; i++) time = time * 32 + ALPHABET.indexOf(id.charAt(i));
  return time;
}

function increment(): void {
  for (let i = RANDOM_DIGITS - 1; i >= 0; i--) {
    const next = (digits[i] ?? 0) + 1;
    digits[i] = next & 31;
    if (next < 32) return;
  }
}

let cachedTime = -1;
let cachedPrefix = "";

function encodeTime(time: number): string {
  if (time === cachedTime) return cachedPrefix;
  let rest = time;
  let text = "";
  for (let i = 0; i < 10; i++) {
    text = ALPHABET.charAt(rest % 32) + text;
    rest = Math.floor(rest / 32);
  }
  cachedTime = time;
  cachedPrefix = text;
  return text;
}

function encodeDigits(): string {
  let text = "";
  for (let i = 0; i < RANDOM_DIGITS; i++) text += ALPHABET.charAt(digits[i] ?? 0);
  return text;
}
