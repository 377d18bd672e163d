/**
 * One text that stands in several pieces: the strings of a document, or what the events of a stream add to it. Finds what the rules look for, and
 * notes in each piece what is replaced.
 *
 * Invariants:
 * 1. A piece is judged when no match can begin in it, or before it, that is not known.
 * 2. A match that spans pieces is replaced once, in the first of those that have not left; in the others it is removed.
 */
import { type FoundText, SOFT_BREAK, type TextScanner } from "../../engines/text-scan/index.ts";
import type { Findings } from "./findings.ts";
import { JsonUnescaper } from "./json-unescaper.ts";
import type { GuardrailPlace, PlaceRules } from "./rule-set.ts";

interface Edit {
  readonly from: number;
  readonly to: number;
  readonly text: string;
}

export class TextPiece {
  readonly text: string;
  /** JSON inside of a string: the arguments of a tool. */
  readonly isJson: boolean;
  readonly isEditable: boolean;
  /** Positions in the channel. */
  start = 0;
  end = 0;
  /** The piece went to the other side. */
  hasLeft = false;
  edits: Edit[] | null = null;
  /** What was found in this piece alone: beginnings and ends. */
  found: (readonly [number, number])[] | null = null;
  /** For a piece with escapes: where each character of the channel begins and ends. */
  places: { readonly from: readonly number[]; readonly to: readonly number[] } | null = null;

  constructor(text: string, { isJson = false, isEditable = true } = {}) {
    this.text = text;
    this.isJson = isJson;
    this.isEditable = isEditable;
  }

  /** The text with its edits; null if there are none. */
  edited(): string | null {
    if (this.edits === null) return null;
    let text = "";
    let copied = 0;
    for (const edit of this.edits.toSorted((a, b) => a.from - b.from)) {
      text += this.text.slice(copied, edit.from) + edit.text;
      copied = edit.to;
    }
    return text + this.text.slice(copied);
  }
}

export class TextChannel {
  readonly #rules: PlaceRules;
  readonly #findings: Findings;
  readonly #place: GuardrailPlace;
  readonly #scanner: TextScanner;
  /** Those that may still be part of a match. */
  #pieces: TextPiece[] = [];
  readonly #joinsPieces: boolean;
  #length = 0;
  /** Matches before this position were applied. */
  #applied = 0;
  #settled = 0;
  readonly #provisional = new Set<string>();
  #unescaper: JsonUnescaper | null = null;

  /** `joinsPieces`: finds only what spans pieces, of which each was searched before. */
  constructor(rules: PlaceRules, findings: Findings, place: GuardrailPlace, joinsPieces = false) {
    this.#rules = rules;
    this.#findings = findings;
    this.#place = place;
    this.#joinsPieces = joinsPieces;
    this.#scanner = rules.createScanner();
  }

  /** Throws `GuardrailBlock`. */
  push(piece: TextPiece): void {
    let { text } = piece;
    piece.start = this.#length;
    if (piece.isJson) {
      this.#unescaper ??= new JsonUnescaper();
      const decoded = this.#unescaper.push(text);
      text = decoded.text;
      piece.places = decoded.places;
      // A character that the next piece completes belongs to both.
      piece.end = this.#length + text.length + (decoded.isOpen ? 1 : 0);
    } else piece.end = this.#length + text.length;
    this.#length += text.length;
    this.#pieces.push(piece);
    this.#scanner.push(text);
    this.#apply(this.#scanner.takeMatches());
  }

  /** The next piece is another text, that a person may read together with this one. */
  pause(): void {
    this.#length += SOFT_BREAK.length;
    this.#scanner.push(SOFT_BREAK);
    this.#apply(this.#scanner.takeMatches());
  }

  /** The text ends; the next piece begins another one. */
  end(): void {
    this.#scanner.end();
    this.#unescaper = null;
    this.#apply(this.#scanner.takeMatches());
    this.#settled = this.#length;
  }

  /** What is there may be the end: judges it, but goes on looking for what began in it. */
  settle(): void {
    if (this.#settled === this.#length) return;
    this.#apply(this.#scanner.settle(), true);
    this.#settled = this.#length;
  }

  isJudged(piece: TextPiece): boolean {
    return piece.end <= this.#scanner.judged || piece.end <= this.#settled;
  }

  #apply(matches: readonly FoundText[], isProvisional = false): void {
    if (this.#scanner.isTooComplex)
      this.#findings.unread(this.#place, this.#rules.strict, "the text takes too long to search");
    for (const match of matches) this.#replace(match, isProvisional);
    const { judged } = this.#scanner;
    if (this.#pieces.length > 0 && (this.#pieces[0]?.end ?? 0) <= judged)
      this.#pieces = this.#pieces.filter(({ end }) => end > judged);
  }

  #replace({ pattern, start, end, text }: FoundText, isProvisional: boolean): void {
    const rule = this.#rules.texts[pattern];
    // What was found when the text might have ended is found again when it goes on.
    const name = `${pattern} ${start} ${end}`;
    if (rule === undefined || this.#provisional.has(name)) return;
    if (isProvisional) this.#provisional.add(name);
    const touched = this.#pieces.filter((piece) => piece.end > start && piece.start < end);
    if (
      this.#joinsPieces &&
      (!text.includes(SOFT_BREAK) || touched.some((piece) => hasFound(piece, start, end)))
    )
      return;
    const replacement = this.#findings.judge(this.#place, rule, text.replaceAll(SOFT_BREAK, ""));
    for (const piece of touched)
      (piece.found ??= []).push([
        Math.max(start, piece.start) - piece.start,
        Math.min(end, piece.end) - piece.start,
      ]);
    if (replacement === null || end <= this.#applied) return;
    const from = Math.max(start, this.#applied);
    this.#applied = end;
    let isPlaced = false;
    for (const piece of this.#pieces) {
      if (piece.end <= from || piece.start >= end || piece.hasLeft) continue;
      if (!piece.isEditable) {
        if (rule.owned !== null) this.#findings.cannotMask(this.#place, rule.owned);
        continue;
      }
      const inside = piece.isJson ? JSON.stringify(replacement).slice(1, -1) : replacement;
      (piece.edits ??= []).push({
        from: placeOf(piece, Math.max(from, piece.start) - piece.start, "from"),
        to: placeOf(piece, Math.min(end, piece.end) - piece.start - 1, "to"),
        text: isPlaced ? "" : inside,
      });
      isPlaced = true;
    }
  }
}

function hasFound({ found, start: offset }: TextPiece, start: number, end: number): boolean {
  return found?.some(([from, to]) => offset + from < end && offset + to > start) === true;
}

function placeOf({ places }: TextPiece, at: number, side: "from" | "to"): number {
  if (places === null) return side === "from" ? at : at + 1;
  return places[side][at] ?? 0;
}
