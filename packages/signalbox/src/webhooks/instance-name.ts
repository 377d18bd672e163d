/**
 * From an entity as a provider writes it to the name of an instance.
 *
 * Two forms, chosen per source:
 * - `plain` (default): lower-case, `/` and every other character outside letters, digits, `_`, `.`, `-` become `-`. `Acme/Widgets` is
 *   `acme-widgets`: what people expect to type. It is not one-to-one (`a/b-c` and `a-b/c` meet), so names found in payloads go through
 *   `EntityClaims`, which sends the second comer to its reversible name instead.
 * - `reversible`: lower-case, and every byte (UTF-8) outside `a-z`, `0-9`, `.`, `-` is written `_` and two hexadecimal digits.
 *   `a/b-c` is `a_2fb-c`, `a-b/c` is `a-b_2fc`; `decodeReversible` gives the lower-cased entity back.
 */

export type EntityForm = "plain" | "reversible";

const MAX_CHARACTERS = 256;
/** What a forgotten value turns into on its way through a sender's string template. */
const FORGOTTEN: ReadonlySet<string> = new Set(["undefined", "null"]);

/** Plain names of the entities that sent lately: the same few hundred come again and again. Bounded, because senders choose them. */
const plainNames = new Map<string, string | null>();
const MAX_PLAIN_NAMES = 4096;

/** Null when nothing usable is left: empty, `.`, `..`, too long, or a forgotten value spelled out. */
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
  const name = form === "plain" ? toPlain(lower) : toReversible(lower);
  if (name === "" || name === "." || name === ".." || FORGOTTEN.has(name)) return null;
  return countAtMost(name, MAX_CHARACTERS) ? name : null;
}

/** One spelling for what reads the same: providers' names are case-insensitive, and composed and decomposed accents look alike. */
export function normalise(entity: string): string {
  return entity.trim().normalize("NFC").toLowerCase();
}

/** True when a plain name could stand for another entity as well, because a `-` may have been something else. */
export function isAmbiguous(plainName: string): boolean {
  return plainName.includes("-");
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
