/** Random bytes and texts, and mutations of given ones. Bytes are latin1 text throughout. */
import { pick, type Random } from "../../support/ledger/random.ts";

/** Bytes with a special meaning to parsers. */
const SPECIAL = [
  "\0",
  "\r",
  "\n",
  "\r\n",
  "\t",
  " ",
  "\x0b",
  "\x0c",
  "\x7f",
  "\x80",
  "\xa0",
  "\xff",
  ":",
  ";",
  ",",
  "=",
  '"',
  "\\",
  "%",
  "/",
  "?",
  "#",
  "{",
  "[",
  "0",
  "-1",
];

/** From 0 to `below` - 1. */
export function upTo(random: Random, below: number): number {
  return Math.floor(random() * below);
}

export function chance(random: Random, probability: number): boolean {
  return random() < probability;
}

export function repeat<T>(random: Random, max: number, make: () => T): T[] {
  return Array.from({ length: upTo(random, max + 1) }, make);
}

export function randomBytes(random: Random, max: number): string {
  return repeat(random, max, () => String.fromCharCode(upTo(random, 256))).join("");
}

/** One to four mutations: bytes changed, inserted, removed or repeated, or the end cut off. */
export function mutate(random: Random, text: string): string {
  let result = text;
  for (let i = upTo(random, 4); i >= 0; i--) result = mutateOnce(random, result);
  return result;
}

export function mutateOnce(random: Random, text: string): string {
  const at = upTo(random, text.length + 1);
  const end = Math.min(text.length, at + 1 + upTo(random, 8));
  switch (upTo(random, 6)) {
    case 0:
      return text.slice(0, at) + toByte(pick(random, SPECIAL)) + text.slice(at + 1);
    case 1:
      return text.slice(0, at) + toByte(pick(random, SPECIAL)) + text.slice(at);
    case 2:
      return text.slice(0, at) + text.slice(end);
    case 3:
      return text.slice(0, end) + text.slice(at);
    case 4:
      return (
        text.slice(0, at) +
        String.fromCharCode((text.charCodeAt(at) || 0) ^ (1 << upTo(random, 8))) +
        text.slice(at + 1)
      );
    default:
      return text.slice(0, at);
  }
}

/** Positions at which a text is split into writes, ascending. */
export function splits(random: Random, length: number, max = 4): number[] {
  return repeat(random, max, () => upTo(random, length + 1)).sort((a, b) => a - b);
}

export function cutAt(text: string, positions: readonly number[]): Buffer[] {
  const edges = [0, ...positions, text.length];
  return edges
    .slice(1)
    .map((end, i) => Buffer.from(text.slice(edges[i], end), "latin1"))
    .filter((part) => part.length > 0);
}

function toByte(text: string): string {
  return Buffer.from(text, "latin1").toString("latin1");
}
