/**
 * Reads the comments of the keys in the source of the configuration's schema: the comment of a key is its documentation, and editors show it. The
 * compiler has no interface for programs, so the objects in the source are found by a small scanner.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const FOLDER = join(import.meta.dirname, "../../packages/signalbox/src/config");

/** The keys of one object in the source, with their comments; null for a key without one. */
export type CommentedObject = ReadonlyMap<string, string | null>;

export function readCommentedObjects(): CommentedObject[] {
  return readdirSync(FOLDER)
    .filter((name) => name.endsWith(".ts") && !name.endsWith(".test.ts"))
    .flatMap((name) => scanObjects(readFileSync(join(FOLDER, name), "utf8")));
}

/** Comments, texts, regular expressions (after an opening bracket, a comma, a colon or `=`), names and punctuation. */
const TOKEN =
  /\/\*\*(?<doc>[\s\S]*?)\*\/|\/\*[\s\S]*?\*\/|\/\/[^\n]*|(?<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`)|(?<=[(,:=]\s*)(?<regex>\/(?:[^/\\[\n]|\\.|\[(?:[^\]\\]|\\.)*\])+\/\w*)|(?<name>[A-Za-z_$][\w$]*)|(?<mark>\.{3}|[{}()[\]:,?])/g;

export function scanObjects(source: string): CommentedObject[] {
  const found: CommentedObject[] = [];
  /** One entry for each open bracket; an object has its keys. */
  const open: { readonly keys: Map<string, string | null> | null }[] = [];
  let doc: string | null = null;
  let name: string | null = null;
  /** A name is a key only at the beginning of a member. */
  let isMemberStart = false;
  for (const { groups = {} } of source.matchAll(TOKEN)) {
    const { mark } = groups;
    if (groups["doc"] !== undefined) doc = toLine(groups["doc"]);
    else if (groups["name"] !== undefined) {
      name = isMemberStart ? groups["name"] : null;
      isMemberStart = false;
    } else if (mark === "{" || mark === "(" || mark === "[") {
      open.push({ keys: mark === "{" ? new Map() : null });
      isMemberStart = mark === "{";
      if (mark === "{") doc = null;
      name = null;
    } else if (mark === "}" || mark === ")" || mark === "]") {
      const { keys } = open.pop() ?? { keys: null };
      if (name !== null) keys?.set(name, doc);
      name = null;
      if (keys !== null && keys.size > 0) found.push(keys);
      isMemberStart = false;
    } else if (mark === ":" && name !== null) {
      open.at(-1)?.keys?.set(name, doc);
      doc = null;
      name = null;
    } else if (mark === ",") {
      // A member without a value has that of the variable of its name.
      if (name !== null) open.at(-1)?.keys?.set(name, doc);
      isMemberStart = open.at(-1)?.keys != null;
      if (isMemberStart) doc = null;
      name = null;
    } else if (groups["text"] !== undefined || groups["regex"] !== undefined || mark === "...")
      isMemberStart = false;
  }
  return found;
}

function toLine(comment: string): string {
  return comment
    .split("\n")
    .map((line) => line.replace(/^\s*\*?\s?/, "").trim())
    .join(" ")
    .trim();
}
