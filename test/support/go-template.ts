/**
 * The part of Go's text/template that the Helm chart uses: if, else, with, range, define, variables, pipelines and the functions below. Helm is in no
 * package of Debian or npm; an action or a function that is not known here fails the test, so that the chart does not use it unchecked.
 */
import { createHash } from "node:crypto";
import { stringify } from "yaml";

export type Values = Readonly<Record<string, unknown>>;
type Scope = Map<string, unknown>;

interface Action {
  readonly kind: "action";
  readonly code: string;
}
interface Block {
  readonly kind: "block";
  readonly word: "if" | "with" | "range";
  readonly code: string;
  readonly body: Node[];
  readonly otherwise: Node[];
}
type Node = string | Action | Block;

export class ChartRenderer {
  readonly #defined = new Map<string, Node[]>();
  readonly #functions: Record<string, (...args: never[]) => unknown>;

  constructor() {
    this.#functions = {
      ...FUNCTIONS,
      include: (name: string, dot: unknown) => this.#render(this.#find(name), dot, new Map([["$", dot]])),
    };
  }

  /** Renders a file. Its definitions are known to files that are rendered later. */
  render(source: string, dot: Values): string {
    const tokens = tokenize(source);
    return this.#render(this.#parse(tokens).nodes, dot, new Map([["$", dot]]));
  }

  #find(name: string): Node[] {
    const found = this.#defined.get(name);
    if (found === undefined) throw new Error(`no template "${name}"`);
    return found;
  }

  /** Consumes tokens up to the end of the block. `ending` is the action that ended it; empty at the end of the file. */
  #parse(tokens: (string | Action)[]): { nodes: Node[]; ending: string } {
    const nodes: Node[] = [];
    for (let token = tokens.shift(); token !== undefined; token = tokens.shift()) {
      if (typeof token === "string") {
        nodes.push(token);
        continue;
      }
      const [word, rest] = splitWord(token.code);
      if (word === "end" || word === "else") return { nodes, ending: token.code };
      if (word === "define") {
        const { nodes: body } = this.#parse(tokens);
        this.#defined.set(JSON.parse(rest) as string, body);
      } else if (word === "if" || word === "with" || word === "range") {
        nodes.push(this.#block(word, rest, tokens));
      } else if (!token.code.startsWith("/*")) nodes.push(token);
    }
    return { nodes, ending: "" };
  }

  #block(word: Block["word"], code: string, tokens: (string | Action)[]): Block {
    const { nodes: body, ending } = this.#parse(tokens);
    const [end, then] = splitWord(ending);
    if (end === "end") return { kind: "block", word, code, body, otherwise: [] };
    if (end !== "else") throw new Error(`{{ ${word} ${code} }} has no end`);
    const [next, rest] = splitWord(then);
    if (next === "if")
      return { kind: "block", word, code, body, otherwise: [this.#block("if", rest, tokens)] };
    return { kind: "block", word, code, body, otherwise: this.#parse(tokens).nodes };
  }

  #render(nodes: readonly Node[], dot: unknown, outer: Scope): string {
    const scope = new Map(outer);
    return nodes
      .map((node) => {
        if (typeof node === "string") return node;
        if (node.kind === "block") return this.#renderBlock(node, dot, scope);
        const assigned = /^(\$\w+)\s*:=\s*(.*)$/s.exec(node.code);
        if (assigned === null) return toText(this.#evaluate(node.code, dot, scope));
        scope.set(assigned[1] ?? "", this.#evaluate(assigned[2] ?? "", dot, scope));
        return "";
      })
      .join("");
  }

  #renderBlock({ word, code, body, otherwise }: Block, dot: unknown, scope: Scope): string {
    const value = this.#evaluate(code, dot, scope);
    if (!isTrue(value)) return this.#render(otherwise, dot, scope);
    if (word === "if") return this.#render(body, dot, scope);
    if (word === "with") return this.#render(body, value, scope);
    return Object.values(value as object)
      .map((item) => this.#render(body, item, scope))
      .join("");
  }

  #evaluate(code: string, dot: unknown, scope: Scope): unknown {
    const commands = splitPipeline(lex(code));
    return commands.reduce<unknown[]>((piped, command) => [this.#command(command, piped, dot, scope)], [])[0];
  }

  #command(words: readonly string[], piped: readonly unknown[], dot: unknown, scope: Scope): unknown {
    const [first = ""] = words;
    if (/^[a-zA-Z]\w*$/.test(first) && first !== "true" && first !== "false") {
      const call = this.#functions[first];
      if (call === undefined) throw new Error(`the function ${first} is not known to this test`);
      const args = words.slice(1).map((word) => this.#operand(word, dot, scope));
      return call(...([...args, ...piped] as never[]));
    }
    if (words.length !== 1) throw new Error(`cannot read ${words.join(" ")}`);
    return this.#operand(first, dot, scope);
  }

  #operand(word: string, dot: unknown, scope: Scope): unknown {
    if (word.startsWith("(")) return this.#evaluate(word.slice(1, -1), dot, scope);
    if (word.startsWith('"')) return JSON.parse(word);
    if (/^-?\d/.test(word)) return Number(word);
    if (word === "true" || word === "false") return word === "true";
    const [variable] = /^\$\w*/.exec(word) ?? [];
    if (variable !== undefined && !scope.has(variable)) throw new Error(`no variable ${variable}`);
    const start = variable === undefined ? dot : scope.get(variable);
    const path = word
      .slice(variable?.length ?? 0)
      .split(".")
      .filter((name) => name !== "");
    return path.reduce<unknown>((value, name) => {
      if (typeof value !== "object" || value === null) throw new Error(`${word}: no value before .${name}`);
      return (value as Record<string, unknown>)[name];
    }, start);
  }
}

const lines = (text: string, indent: number) => text.replaceAll(/^/gm, " ".repeat(indent));

/** As in sprig and Helm. The value of a pipeline is the last argument. */
const FUNCTIONS = {
  and: (...all: unknown[]) => all.find((value) => !isTrue(value)) ?? all.at(-1),
  not: (value: unknown) => !isTrue(value),
  eq: (a: unknown, b: unknown) => a === b,
  ne: (a: unknown, b: unknown) => a !== b,
  gt: (a: number, b: number) => a > b,
  int: (value: unknown) => Math.trunc(Number(value)),
  contains: (part: string, text: string) => text.includes(part),
  default: (fallback: unknown, value: unknown) => (isTrue(value) ? value : fallback),
  ternary: (yes: unknown, no: unknown, condition: boolean) => (condition ? yes : no),
  required(message: string, value: unknown) {
    if (value === undefined || value === null || value === "") throw new Error(message);
    return value;
  },
  printf: (format: string, ...args: unknown[]) =>
    args.reduce<string>((text, arg) => text.replace("%s", String(arg)), format),
  trunc: (length: number, text: string) => text.slice(0, length),
  trimSuffix: (suffix: string, text: string) =>
    text.endsWith(suffix) ? text.slice(0, -suffix.length) : text,
  quote: (value: unknown) => JSON.stringify(String(value)),
  nindent: (indent: number, text: string) => `\n${lines(text, indent)}`,
  toYaml: (value: unknown) => stringify(value, { lineWidth: 0 }).trimEnd(),
  toJson: (value: unknown) => JSON.stringify(value),
  sha256sum: (text: string) => createHash("sha256").update(text).digest("hex"),
};

function isTrue(value: unknown): boolean {
  if (typeof value === "object" && value !== null) return Object.keys(value).length > 0;
  return Boolean(value);
}

function toText(value: unknown): string {
  if (value === undefined || value === null) return "<no value>";
  if (typeof value === "string") return value;
  if (typeof value === "number" || typeof value === "boolean") return JSON.stringify(value);
  throw new Error(`an object is printed: ${JSON.stringify(value)}`);
}

/** Text and actions; `{{-` and `-}}` remove the white space beside them. */
function tokenize(source: string): (string | Action)[] {
  const parts = source.split(/\{\{(-?)\s*(.*?)\s*(-?)\}\}/s);
  const tokens: (string | Action)[] = [];
  let isTrimmed = false;
  for (let i = 0; i < parts.length; i += 4) {
    const [text = "", before, code, after] = parts.slice(i, i + 4);
    const start = isTrimmed ? text.trimStart() : text;
    tokens.push(before === "-" ? start.trimEnd() : start);
    if (code !== undefined) tokens.push({ kind: "action", code });
    isTrimmed = after === "-";
  }
  return tokens;
}

function splitWord(code: string): [string, string] {
  const [word = ""] = /^\S*/.exec(code) ?? [];
  return [word, code.slice(word.length).trim()];
}

/** Words, strings, `|`, and parentheses with what is inside them. */
function lex(code: string): string[] {
  const words: string[] = [];
  let rest = code.trim();
  while (rest !== "") {
    const length = rest.startsWith("(")
      ? closing(rest)
      : (/^("(?:[^"\\]|\\.)*"|\||[^\s|()]+)/.exec(rest)?.[0].length ?? 0);
    if (length === 0) throw new Error(`cannot read ${rest}`);
    words.push(rest.slice(0, length));
    rest = rest.slice(length).trim();
  }
  return words;
}

function closing(text: string): number {
  let depth = 0;
  let isQuoted = false;
  for (let i = 0; i < text.length; i++) {
    if (text[i] === '"') isQuoted = !isQuoted;
    if (isQuoted) continue;
    if (text[i] === "(") depth += 1;
    if (text[i] === ")") depth -= 1;
    if (depth === 0) return i + 1;
  }
  throw new Error(`no closing parenthesis in ${text}`);
}

function splitPipeline(words: readonly string[]): string[][] {
  const commands: string[][] = [[]];
  for (const word of words) {
    if (word === "|") commands.push([]);
    else commands.at(-1)?.push(word);
  }
  return commands;
}
