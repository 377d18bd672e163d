/** Counts the values that a text of SQL statements takes; `node:sqlite` itself binds NULL for those that are missing. */

/** Strings, quoted names and comments, in which nothing is a parameter; then ends of statements, and parameters. */
const TOKENS =
  /'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\]|--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|;|\?\d*|[:@$][A-Za-z_]\w*/g;

/** Texts are mostly constants of the program. */
const MAX_KNOWN = 1000;
const known = new Map<string, number | null>();

/** The number of values that the last statement takes; null for a text without a statement. */
export function countBindings(text: string): number | null {
  let count = known.get(text);
  if (count === undefined) {
    count = isBlank(text) ? null : countIn(lastStatement(text));
    if (known.size >= MAX_KNOWN) known.clear();
    known.set(text, count);
  }
  return count;
}

function countIn(statement: string): number {
  let count = 0;
  const names = new Set<string>();
  for (const [token] of statement.matchAll(TOKENS)) {
    if (token.startsWith("?")) count = token === "?" ? count + 1 : Math.max(count, Number(token.slice(1)));
    else if (/^[:@$]/.test(token) && !names.has(token)) {
      names.add(token);
      count += 1;
    }
  }
  return count;
}

function lastStatement(text: string): string {
  let start = 0;
  for (const { 0: token, index } of text.matchAll(TOKENS)) {
    if (token === ";" && !isBlank(text.slice(index))) start = index;
  }
  return text.slice(start);
}

/** True if the text has nothing but blanks, comments and semicolons. */
function isBlank(text: string): boolean {
  return text.replaceAll(/--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|[\s;]+/g, "") === "";
}
