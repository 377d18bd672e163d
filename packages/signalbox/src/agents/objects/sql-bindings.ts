/** Finds the values that a text of SQL statements takes; `node:sqlite` itself binds NULL for those that are missing. */
import { wrapCounters } from "./change-counters.ts";
import { hideOwnTables } from "./hidden-tables.ts";
import { TOKENS } from "./sql-tokens.ts";

/** A text of SQL statements, and the number of values that its last statement takes; null for a text without a statement. */
export interface Bindings {
  readonly count: number | null;
  /** With numbers in place of names: values are given by position, which `node:sqlite` refuses for names. The tables of the runtime are hidden. */
  readonly text: string;
  /** It has several statements. */
  readonly isScript: boolean;
  /** The last statement inserts, updates or deletes rows. */
  readonly changesRows: boolean;
  readonly inserts: boolean;
  /** The last statement reads how many rows were changed, or which one was inserted. */
  readonly readsCounters: boolean;
}

const CHANGES_ROWS = /^[\s;]*(?:insert|replace|update|delete|with)\b/i;
const INSERTS = /\b(?:insert|replace)\b/i;
/** Without comments, in which a statement may begin. */
const COMMENTS = /--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)/g;

/** Texts are mostly constants of the program. */
const MAX_KNOWN = 1000;
const known = new Map<string, Bindings>();

export function readBindings(text: string): Bindings {
  let bindings = known.get(text);
  if (bindings === undefined) {
    bindings = isBlank(text) ? { ...NOTHING, text } : read(text);
    if (known.size >= MAX_KNOWN) known.clear();
    known.set(text, bindings);
  }
  return bindings;
}

function read(text: string): Bindings {
  const start = lastStatement(text);
  let count = 0;
  const names = new Map<string, number>();
  const last = text.slice(start).replaceAll(TOKENS, (token) => {
    if (token.startsWith("?")) count = token === "?" ? count + 1 : Math.max(count, Number(token.slice(1)));
    if (!/^[:@$]/.test(token)) return token;
    const known = names.get(token);
    if (known === undefined) count += 1;
    names.set(token, known ?? count);
    return `?${names.get(token)}`;
  });
  const hidden = hideOwnTables(last);
  const wrapped = wrapCounters(hidden);
  const bare = last.replaceAll(COMMENTS, " ");
  const changesRows = CHANGES_ROWS.test(bare);
  return {
    count,
    text: text.slice(0, start) + wrapped,
    isScript: start > 0,
    changesRows,
    inserts: changesRows && INSERTS.test(bare),
    readsCounters: wrapped !== hidden,
  };
}

const NOTHING = { count: null, isScript: false, changesRows: false, inserts: false, readsCounters: false };

/** Where the last statement begins. */
function lastStatement(text: string): number {
  let start = 0;
  for (const { 0: token, index } of text.matchAll(TOKENS)) {
    if (token === ";" && !isBlank(text.slice(index))) start = index;
  }
  return start;
}

/** True if the text has nothing but blanks, comments and semicolons. */
function isBlank(text: string): boolean {
  return text.replaceAll(/--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|[\s;]+/g, "") === "";
}
