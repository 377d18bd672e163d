/**
 * One text that stands in several pieces: the strings of a document, or what the events of a stream add to it. Finds what the rules look for, and
 * notes in each piece what is replaced.
 *
 * Invariants:
 * 1. A piece is judged when no match can begin in it, or before it, that is not known.
 * 2. A match that spans pieces is replaced once, in the first of them; in the others it is removed.
 * 3. What is detached (`detach`) is not judged, and leaves with the next piece, or with the end.
 */
import {
  type FoundText,
  type IdlePlace,
  SOFT_BREAK,
  type TextScanner,
} from "../../engines/text-scan/index.ts";
import type { Findings } from "./findings.ts";
import { JsonUnescaper } from "./json-unescaper.ts";
import type { GuardrailPlace, PlaceRules } from "./rule-set.ts";

interface Edit {
  readonly from: number;
  readonly to: number;
  readonly text: string;
}

interface FoundPart {
  readonly from: number;
  readonly to: number;
  readonly pattern: number;
  readonly isEdited: boolean;
}

interface Places {
  readonly from: readonly number[];
  readonly to: readonly number[];
}

export class TextPiece {
  text: string;
  /** JSON inside of a string: the arguments of a tool. */
  readonly isJson: boolean;
  readonly isEditable: boolean;
  /** Positions in the channel. */
  start = 0;
  end = 0;
  edits: Edit[] | null = null;
  /** What was found in this piece, also if it stays as it is. */
  found: FoundPart[] | null = null;
  /** For a piece with escapes: where each character of the channel begins and ends. */
  places: Places | null = null;
  /** Text has moved into the piece, or out of it. */
  #isMoved = false;

  constructor(text: string, { isJson = false, isEditable = true } = {}) {
    this.text = text;
    this.isJson = isJson;
    this.isEditable = isEditable;
  }

  /** The text with its edits; null if it is as it came. */
  edited(): string | null {
    if (this.edits === null) return this.#isMoved ? this.text : null;
    let text = "";
    let copied = 0;
    for (const edit of this.edits.toSorted((a, b) => a.from - b.from)) {
      text += this.text.slice(copied, edit.from) + edit.text;
      copied = edit.to;
    }
    return text + this.text.slice(copied);
  }

  /** Takes away what is behind a position of the channel, which is all of it or a part. */
  cut(position: number): TextPiece {
    const kept = Math.max(0, position - this.start);
    const at = this.places === null ? kept : (this.places.from[kept] ?? this.text.length);
    const rest = new TextPiece(this.text.slice(at), { isJson: this.isJson });
    rest.start = this.start + kept;
    rest.end = this.end;
    if (this.places !== null) {
      const shift = (places: readonly number[]) => places.slice(kept).map((place) => place - at);
      rest.places = { from: shift(this.places.from), to: shift(this.places.to) };
    }
    this.text = this.text.slice(0, at);
    this.end = position;
    this.#isMoved = true;
    return rest;
  }

  /** Puts a piece that ended where this one begins before it. */
  prepend(before: TextPiece): void {
    const { length } = before.text;
    const count = this.start - before.start;
    if (before.places !== null || this.places !== null) {
      const first = placesOf(before);
      const own = placesOf(this);
      const from = [...first.from.slice(0, count), ...own.from.map((place) => place + length)];
      // An escape that began in the piece before ends in this one.
      if (before.end > this.start) from[count] = first.from[count] ?? length;
      this.places = {
        from,
        to: [...first.to.slice(0, count), ...own.to.map((place) => place + length)],
      };
    }
    this.text = before.text + this.text;
    this.start = before.start;
    this.#isMoved = true;
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
  #unescaper: JsonUnescaper | null = null;
  #detached: TextPiece | null = null;
  /** Where a text begins that is refused: it and all behind it stay. */
  #refusedAt = Infinity;

  /** `joinsPieces`: finds only what spans pieces, of which each was searched before. */
  constructor(rules: PlaceRules, findings: Findings, place: GuardrailPlace, joinsPieces = false) {
    this.#rules = rules;
    this.#findings = findings;
    this.#place = place;
    this.#joinsPieces = joinsPieces;
    this.#scanner = rules.createScanner();
  }

  /** Where in the last piece nothing has begun that is not known, for a channel that searches it again together with others. */
  idleIn(piece: TextPiece): IdlePlace | null {
    const { idle } = this.#scanner;
    return idle === null || piece.isJson ? null : { ...idle, at: idle.at - piece.start };
  }

  /** `idle`: see `TextScanner.push`. Throws `GuardrailBlock`. */
  push(piece: TextPiece, idle: IdlePlace | null = null): void {
    const text = this.#add(piece);
    this.#search(() => this.#scanner.push(text, idle));
  }

  /** The same in slices, between which other work may have its turn. */
  *pushSlices(piece: TextPiece, idle: IdlePlace | null = null): Generator<void> {
    const slices = this.#scanner.pushSlices(this.#add(piece), idle);
    for (let isWhole = false; ;) {
      this.#search(() => (isWhole = slices.next().done === true));
      if (isWhole) return;
      yield;
    }
  }

  /** Returns what the scanner gets. */
  #add(piece: TextPiece): string {
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
    if (this.#detached !== null) {
      piece.prepend(this.#detached);
      this.#pieces = this.#pieces.filter((other) => other !== this.#detached);
      this.#detached = null;
    }
    this.#pieces.push(piece);
    return text;
  }

  /** The next piece is another text, that a person may read together with this one. */
  pause(): void {
    this.#length += SOFT_BREAK.length;
    this.#search(() => this.#scanner.push(SOFT_BREAK));
  }

  /** The text ends; the next piece begins another one. Returns what was detached and no piece has taken. */
  end(): TextPiece | null {
    this.#unescaper = null;
    // An escape that nothing has completed.
    for (const piece of this.#pieces) piece.end = Math.min(piece.end, this.#length);
    this.#search(() => this.#scanner.end());
    const detached = this.#detached;
    this.#detached = null;
    return detached;
  }

  /** Takes what is not judged out of the pieces that have it, so that they can leave; it stays here. */
  detach(): void {
    const judged = this.#judged;
    let tail = this.#detached;
    for (const piece of this.#pieces) {
      if (piece === this.#detached || piece.end <= judged) continue;
      const rest = piece.cut(judged);
      if (tail !== null) rest.prepend(tail);
      tail = rest;
    }
    this.#detached = tail;
    this.#pieces = tail === null ? [] : [tail];
  }

  isJudged(piece: TextPiece): boolean {
    return piece.end <= this.#judged;
  }

  get #judged(): number {
    return Math.min(this.#scanner.judged, this.#refusedAt);
  }

  #search(scan: () => void): void {
    const before = this.#scanner.judged;
    scan();
    let at = before;
    try {
      if (this.#scanner.isTooComplex)
        this.#findings.unread(this.#place, this.#rules, "the text takes too long to search");
      for (const match of this.#scanner.takeMatches()) {
        at = match.start;
        this.#replace(match);
      }
    } catch (error) {
      this.#refusedAt = at;
      throw error;
    }
    const { judged } = this.#scanner;
    if (this.#pieces.length > 0 && (this.#pieces[0]?.end ?? 0) <= judged)
      this.#pieces = this.#pieces.filter(({ end }) => end > judged);
  }

  #replace({ pattern, start, end, text }: FoundText): void {
    const rule = this.#rules.texts[pattern];
    if (rule === undefined) return;
    const touched = this.#pieces.filter((piece) => piece.end > start && piece.start < end);
    if (this.#joinsPieces) {
      if (!text.includes(SOFT_BREAK)) return;
      // Two edits of one place would exclude each other; what another rule only notes excludes nothing.
      const mayEdit = rule.owned === null || rule.owned.rule.action === "mask";
      const isKnown = (part: FoundPart) => part.pattern === pattern || (mayEdit && part.isEdited);
      if (touched.some((piece) => hasFound(piece, start, end, isKnown))) return;
    }
    const replacement = this.#findings.judge(this.#place, rule, text.replaceAll(SOFT_BREAK, ""));
    for (const piece of touched)
      (piece.found ??= []).push({
        from: Math.max(start, piece.start) - piece.start,
        to: Math.min(end, piece.end) - piece.start,
        pattern,
        isEdited: replacement !== null,
      });
    if (replacement === null || end <= this.#applied) return;
    const from = Math.max(start, this.#applied);
    this.#applied = end;
    let isPlaced = false;
    for (const piece of this.#pieces) {
      if (piece.end <= from || piece.start >= end) continue;
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

function hasFound(
  { found, start: offset }: TextPiece,
  start: number,
  end: number,
  isKnown: (part: FoundPart) => boolean,
): boolean {
  return (
    found?.some((part) => offset + part.from < end && offset + part.to > start && isKnown(part)) === true
  );
}

function placeOf({ places }: TextPiece, at: number, side: "from" | "to"): number {
  if (places === null) return side === "from" ? at : at + 1;
  return places[side][at] ?? 0;
}

/** Without escapes, each character stands where it is. */
function placesOf({ places, text }: TextPiece): Places {
  if (places !== null) return places;
  const from = Array.from({ length: text.length }, (_, i) => i);
  return { from, to: from.map((place) => place + 1) };
}
