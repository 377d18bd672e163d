/**
 * From an entity as a provider writes it to the names its instance may have.
 *
 * - `plain`: lower-case, `/` and every other character outside letters, digits, `_`, `.`, `-` become `-`. `Acme/Widgets` is
 *   `acme-widgets`: what people expect to type. It is not one-to-one: `a/b`, `a b` and `a-b` are all `a-b`.
 * - `reversible`: lower-case, and every byte (UTF-8) outside `a-z`, `0-9`, `.`, `-` is written `_` and two hexadecimal digits.
 *   `a/b-c` is `a_2fb-c`; `decodeReversible` gives the lower-cased entity back. No two entities have the same reversible name, but
 *   the reversible name of one (`d/x`: `d_2fx`) can be the plain name of another (`d_2fx`).
 * - reserved: `~` and the reversible name. No plain or reversible name holds a `~`, so nobody else can come to it.
 *
 * `EntityClaims` decides which of them an entity gets.
 */
import { hash } from "node:crypto";

/** How a source wants its instances named; either way a name that another entity owns is not taken. */
export type EntityForm = "plain" | "reversible";

const MAX_CHARACTERS = 256;
const RESERVED = "~";
/** What a forgotten value turns into on its way through a sender's string template. */
const FORGOTTEN: ReadonlySet<string> = new Set(["undefined", "null"]);

/** Plain names of the entities that sent lately: the same few hundred come again and again. Bounded, because senders choose them. */
const plainNames = new Map<string, string | null>();
const MAX_PLAIN_NAMES = 4096;

/** Null when nothing usable is left: empty, `.`, `..`, too long, a zero character, or a forgotten value spelled out. */
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
  const lower = normalise(entity);
  // PostgreSQL cannot store it, and no provider sends it.
  if (lower.includes("\0")) return null;
  const name = form === "plain" ? toPlain(lower) : toReversible(lower);
  if (name === "" || name === "." || name === ".." || FORGOTTEN.has(name)) return null;
  return countAtMost(name, MAX_CHARACTERS) ? name : null;
}

/** The name that no other entity can come to. One that would be too long is a hash, which can still be told from all others. */
export function toReservedName(entity: string): string {
  const lower = normalise(entity);
  const name = RESERVED + toReversible(lower);
  return name.length <= MAX_CHARACTERS ? name : `${RESERVED}${RESERVED}${hash("sha256", lower)}`;
}

/**
 * One spelling for what reads the same: providers' names are case-insensitive, and composed and decomposed accents look alike. Halves of
 * characters, which no encoding can tell apart, are all the replacement character.
 */
export function normalise(entity: string): string {
  return entity.trim().toWellFormed().normalize("NFC").toLowerCase();
}

/** True when the text names the entity: as it is, or in one of the forms of its name. */
export function isNameOf(text: string, entity: string): boolean {
  const given = normalise(text);
  return (
    given === normalise(entity) ||
    given === toInstanceName(entity, "plain") ||
    given === toInstanceName(entity, "reversible") ||
    given === toReservedName(entity)
  );
}

/**
 * True when two entities could come to this plain or reversible name: a `-` may have been another character, and what looks like an
 * escape may be one. Any other name is its entity, letter by letter.
 */
export function canBeShared(name: string): boolean {
  return name.includes("-") || isReversible(name);
}

const ESCAPES_ONLY = /^(?:[a-z0-9.-]|_[0-9a-f]{2})*$/;

/** True when the name is the reversible name of an entity that reads differently. */
function isReversible(name: string): boolean {
  if (!name.includes("_") || !ESCAPES_ONLY.test(name)) return false;
  const entity = decodeReversible(name);
  return toReversible(entity) === name && normalise(entity) === entity;
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

/** Characters are code points; no need to count a megabyte to know that it is too long. */
function countAtMost(text: string, max: number): boolean {
  return text.length <= max || (text.length <= max * 2 && Array.from(text).length <= max);
}
