/**
 * The names that an entity can have. Two entities can have the same plain or reversible name; `entity-claims.ts` decides which one gets it.
 *
 * The text of an entity is exact, if its provider treats it so, or folded: then all texts that differ in case, blanks around them or Unicode form are the
 * same entity. Names are made of the folded text:
 *
 * - `plain`: every character except letters, digits, `_`, `.` and `-` becomes `-`. `Acme/Widgets` is `acme-widgets`. Not one-to-one: `a/b`, `a b` and
 *   `a-b` are all `a-b`, and the exact texts `Zed` and `zed` are both `zed`.
 * - `reversible`: every UTF-8 byte except `a-z`, `0-9`, `.` and `-` is written as `_` and two hexadecimal digits. `a/b-c` is `a_2fb-c`. Differs for
 *   different folded texts, but the reversible name of one entity (`d/x`: `d_2fx`) can be the plain name of another (`d_2fx`).
 * - reserved: `~` and the reversible name. No plain or reversible name contains `~`.
 * - own: `~~` and a SHA-256 of the text. No other text has it.
 */
import { hash } from "node:crypto";

/** An entity as a delivery names it. */
export interface Entity {
  /** As the provider sent it, or folded if it is not exact. */
  readonly text: string;
  /** True when other spellings are other entities. */
  readonly isExact: boolean;
}

/** The form of name that a source prefers. */
export type EntityForm = "plain" | "reversible";

const MAX_CHARACTERS = 256;
const RESERVED = "~";
/** A missing value in a sender's string template becomes one of these texts. */
const FORGOTTEN: ReadonlySet<string> = new Set(["undefined", "null"]);

/** Plain names of recent entities. Bounded, because senders choose them. */
const plainNames = new Map<string, string | null>();
const MAX_PLAIN_NAMES = 4096;

/** Null for a name that cannot be used: empty, `.`, `..`, too long, with a zero character, or a missing value. */
export function toInstanceName(entity: string, form: EntityForm): string | null {
  if (form !== "plain" || entity.length > MAX_CHARACTERS) return makeInstanceName(entity, form);
  let name = plainNames.get(entity);
  if (name === undefined) {
    name = makeInstanceName(entity, form);
    if (plainNames.size >= MAX_PLAIN_NAMES) plainNames.clear();
    plainNames.set(entity, name);
  }
  return name;
}

function makeInstanceName(entity: string, form: EntityForm): string | null {
  const lower = fold(entity);
  // PostgreSQL cannot store a zero character.
  if (lower.includes("\0")) return null;
  const name = form === "plain" ? toPlain(lower) : toReversible(lower);
  if (name === "" || name === "." || name === ".." || FORGOTTEN.has(name)) return null;
  return countAtMost(name, MAX_CHARACTERS) ? name : null;
}

/** Null if it would be too long. */
function toReservedName(entity: string): string | null {
  const name = RESERVED + toReversible(fold(entity));
  return name.length <= MAX_CHARACTERS ? name : null;
}

function toOwnName(text: string): string {
  return `${RESERVED}${RESERVED}${hash("sha256", text)}`;
}

export function toEntity(text: string, isExact: boolean): Entity {
  return { text: isExact ? text.toWellFormed() : fold(text), isExact };
}

/**
 * One spelling for texts that read the same: composed and decomposed accents look alike. Lone surrogates become the replacement character, as in
 * UTF-8.
 */
export function fold(entity: string): string {
  return entity.trim().toWellFormed().normalize("NFC").toLowerCase();
}

/** True when the text is the entity or one of its names, in any spelling. */
export function isNameOf(text: string, entity: string): boolean {
  const given = fold(text);
  return (
    given === fold(entity) ||
    given === toInstanceName(entity, "plain") ||
    given === toInstanceName(entity, "reversible") ||
    given === toReservedName(entity) ||
    given === toOwnName(entity.toWellFormed())
  );
}

/**
 * True when two entities with different folded texts can have this plain or reversible name: a `-` may stand for another character, and `_2f` may be an
 * escape. Any other name equals the folded text.
 */
export function canBeShared(name: string): boolean {
  return name.includes("-") || isReversible(name);
}

const ESCAPES_ONLY = /^(?:[a-z0-9.-]|_[0-9a-f]{2})*$/;

/** True when the name is the reversible name of another entity. */
function isReversible(name: string): boolean {
  if (!name.includes("_") || !ESCAPES_ONLY.test(name)) return false;
  const entity = decodeReversible(name);
  return toReversible(entity) === name && fold(entity) === entity;
}

export function decodeReversible(name: string): string {
  const bytes: number[] = [];
  for (let i = 0; i < name.length; i++) {
    if (name[i] === "_") {
      bytes.push(Number.parseInt(name.slice(i + 1, i + 3), 16));
      i += 2;
    } else {
      bytes.push(name.charCodeAt(i));
    }
  }
  return Buffer.from(bytes).toString();
}

const PLAIN_ASCII = /^[a-z0-9_.-]*$/;

function toPlain(lower: string): string {
  return PLAIN_ASCII.test(lower) ? lower : lower.replaceAll(/[^\p{L}\p{M}\p{N}_.-]/gu, "-");
}

function toReversible(lower: string): string {
  return lower.replaceAll(/[^a-z0-9.-]/gu, (character) =>
    [...Buffer.from(character)].map((byte) => `_${byte.toString(16).padStart(2, "0")}`).join(""),
  );
}

/** Counts code points, but not those of a text that is certainly too long. */
function countAtMost(text: string, max: number): boolean {
  return text.length <= max || (text.length <= max * 2 && Array.from(text).length <= max);
}

/** The names that an entity tries, in order. The last is its own name. */
export function namesOf(text: string, form: EntityForm): string[] {
  const shared = [
    form === "plain" ? toInstanceName(text, "plain") : null,
    toInstanceName(text, "reversible"),
    toReservedName(text),
  ];
  return [...new Set(shared.filter((name) => name !== null)), toOwnName(text)];
}
