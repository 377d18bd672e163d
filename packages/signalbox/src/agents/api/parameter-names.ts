/**
 * The names of a method's parameters, read from its source, for people who call it by hand: JavaScript keeps them nowhere else. Null if the source says
 * nothing, as of a bound or native function. What is not a plain name (a pattern) is shown as `…`.
 */
export interface Parameter {
  readonly name: string;
  /** It has a default, or takes the rest of the arguments. */
  readonly isOptional: boolean;
  readonly isRest: boolean;
}

const OPENING = "([{";
const CLOSING = ")]}";
const QUOTES = "\"'`";
const NAME = /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u;
/** A longer list of parameters is no list that a person fills in. */
const MAX_SOURCE = 10_000;

export function parameterNames(method: (...args: never[]) => unknown): readonly Parameter[] | null {
  const source = withoutComments(Function.prototype.toString.call(method).slice(0, MAX_SOURCE));
  if (source.includes("[native code]")) return null;
  const start = source.indexOf("(");
  // `x => …` has no parentheses around its parameter.
  if (start === -1 || source.slice(0, start).includes("=>")) return null;
  const parts = splitList(source, start + 1);
  return parts === null ? null : parts.map(toParameter);
}

function toParameter(text: string): Parameter {
  const isRest = text.startsWith("...");
  const [name = ""] = (isRest ? text.slice(3) : text).split("=", 1);
  const trimmed = name.trim();
  return {
    name: NAME.test(trimmed) ? trimmed : "…",
    isOptional: isRest || hasDefault(text),
    isRest,
  };
}

/** An equals sign outside of the pattern. */
function hasDefault(text: string): boolean {
  let depth = 0;
  for (const character of text) {
    if (OPENING.includes(character)) depth += 1;
    else if (CLOSING.includes(character)) depth -= 1;
    else if (character === "=" && depth === 0) return true;
  }
  return false;
}

/** The parts between the commas up to the closing parenthesis; null if there is none. */
function splitList(source: string, start: number): string[] | null {
  const parts: string[] = [];
  let depth = 0;
  let from = start;
  for (let at = start; at < source.length; at++) {
    const character = source.charAt(at);
    if (QUOTES.includes(character)) {
      at = endOfText(source, at);
    } else if (OPENING.includes(character)) depth += 1;
    else if (character === "," && depth === 0) {
      parts.push(source.slice(from, at).trim());
      from = at + 1;
    } else if (CLOSING.includes(character)) {
      if (depth === 0) return [...parts, source.slice(from, at).trim()].filter((part) => part !== "");
      depth -= 1;
    }
  }
  return null;
}

function endOfText(source: string, start: number): number {
  const quote = source.charAt(start);
  let at = start + 1;
  while (at < source.length && source.charAt(at) !== quote) at += source.charAt(at) === "\\" ? 2 : 1;
  return at;
}

/** Comments become blanks; texts stay. */
function withoutComments(source: string): string {
  return source.replaceAll(
    /("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`(?:\\.|[^`\\])*`)|\/\*[\s\S]*?\*\/|\/\/[^\n]*/g,
    (_all, text: string | undefined) => text ?? " ",
  );
}
