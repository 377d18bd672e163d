/**
 * The selectors that rewriters accept: types, classes, ids, attributes, `:not`, `:first-child`, `:nth-child`, `:first-of-type`, `:nth-of-type`, descendants and children.
 * An element is judged at its start tag, so that nothing which depends on later ones can be selected.
 */
import type { Attribute } from "./tokenizer.ts";

/** An open element. */
export interface OpenElement {
  readonly name: string;
  readonly attributes: readonly Attribute[];
  /** Among the children of its parent, from 1. */
  readonly index: number;
  /** Among those of its type. */
  readonly indexOfType: number;
}

/** `path`: the open elements from the outermost to the one that is judged. */
export type Matches = (path: readonly OpenElement[]) => boolean;

type Test = (element: OpenElement) => boolean;

interface Compound {
  readonly tests: readonly Test[];
  /** How the compound before is related to this one; null for the first. */
  readonly combinator: "descendant" | "child" | null;
}

/** Throws a `TypeError` for a selector that is not supported. */
export function parseSelector(text: string): Matches {
  const parser = new Parser(text);
  const alternatives = parser.list();
  return (path) =>
    alternatives.some((compounds) => isMatch(compounds, compounds.length - 1, path, path.length - 1));
}

function isMatch(
  compounds: readonly Compound[],
  at: number,
  path: readonly OpenElement[],
  depth: number,
): boolean {
  const compound = compounds[at];
  const element = path[depth];
  if (compound === undefined || element === undefined || !compound.tests.every((test) => test(element)))
    return false;
  if (compound.combinator === null) return true;
  if (compound.combinator === "child") return isMatch(compounds, at - 1, path, depth - 1);
  for (let i = depth - 1; i >= 0; i--) if (isMatch(compounds, at - 1, path, i)) return true;
  return false;
}

const IDENTIFIER = /(?:[-\w\u0080-\uffff]|\\.)+/y;
const ATTRIBUTE =
  /\[\s*([-\w:\u0080-\uffff]+)\s*(?:([~|^$*]?=)\s*(?:"([^"]*)"|'([^']*)'|([^\s\]]+))\s*([iIsS])?\s*)?\]/y;
const NTH = /\(\s*(?:(even|odd)|([+-]?\d*)n\s*([+-]\s*\d+)?|([+-]?\d+))\s*\)/iy;

class Parser {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text.trim();
  }

  list(): Compound[][] {
    const all = [this.#complex()];
    while (this.#has(",")) all.push(this.#complex());
    if (this.#at < this.#text.length) throw this.#refusal();
    return all;
  }

  #complex(): Compound[] {
    this.#skipSpace();
    const compounds: Compound[] = [{ tests: this.#compound(), combinator: null }];
    for (;;) {
      const hasSpace = this.#skipSpace();
      const next = this.#text[this.#at];
      if (next === undefined || next === "," || next === ")") return compounds;
      const isChild = this.#has(">");
      if (!isChild && !hasSpace) throw this.#refusal();
      this.#skipSpace();
      compounds.push({ tests: this.#compound(), combinator: isChild ? "child" : "descendant" });
    }
  }

  #compound(): Test[] {
    const tests: Test[] = [];
    if (this.#has("*")) tests.push(() => true);
    else if (/[-\w\\\u0080-\uffff]/.test(this.#text[this.#at] ?? "")) {
      const type = this.#identifier().toLowerCase();
      tests.push(({ name }) => name === type);
    }
    for (;;) {
      const test = this.#simple();
      if (test === null) break;
      tests.push(test);
    }
    if (tests.length === 0) throw this.#refusal();
    return tests;
  }

  #simple(): Test | null {
    if (this.#has("#")) {
      const id = this.#identifier();
      return (element) => valueOf(element, "id") === id;
    }
    if (this.#has(".")) {
      const name = this.#identifier();
      return (element) => (valueOf(element, "class") ?? "").split(/\s+/).includes(name);
    }
    if (this.#text[this.#at] === "[") return this.#attribute();
    if (this.#has(":")) return this.#pseudo();
    return null;
  }

  #attribute(): Test {
    const found = this.#match(ATTRIBUTE);
    const [, rawName = "", operator, first, second, third, flag] = found;
    const name = rawName.toLowerCase();
    if (operator === undefined) return (element) => valueOf(element, name) !== undefined;
    const fold = (text: string) => (flag?.toLowerCase() === "i" ? text.toLowerCase() : text);
    const wanted = fold(first ?? second ?? third ?? "");
    const compare = COMPARISONS[operator];
    if (compare === undefined) throw this.#refusal();
    return (element) => {
      const value = valueOf(element, name);
      return value !== undefined && compare(fold(value), wanted);
    };
  }

  #pseudo(): Test {
    const name = this.#identifier().toLowerCase();
    if (name === "first-child") return ({ index }) => index === 1;
    if (name === "first-of-type") return ({ indexOfType }) => indexOfType === 1;
    if (name === "nth-child" || name === "nth-of-type") {
      const isNth = this.#nth();
      return ({ index, indexOfType }) => isNth(name === "nth-child" ? index : indexOfType);
    }
    if (name !== "not" || !this.#has("(")) throw this.#refusal();
    const refused = [this.#inner()];
    while (this.#has(",")) refused.push(this.#inner());
    if (!this.#has(")")) throw this.#refusal();
    return (element) => !refused.some((tests) => tests.every((test) => test(element)));
  }

  #inner(): Test[] {
    this.#skipSpace();
    const tests = this.#compound();
    this.#skipSpace();
    return tests;
  }

  #nth(): (index: number) => boolean {
    const [, word, step, offset, exact] = this.#match(NTH);
    if (exact !== undefined) return (index) => index === Number(exact);
    if (word !== undefined) return (index) => index % 2 === (word.toLowerCase() === "odd" ? 1 : 0);
    const a = step === "" || step === "+" ? 1 : step === "-" ? -1 : Number(step);
    const b = Number((offset ?? "0").replaceAll(/\s/g, ""));
    return (index) => (a === 0 ? index === b : (index - b) % a === 0 && (index - b) / a >= 0);
  }

  #identifier(): string {
    const [text] = this.#match(IDENTIFIER);
    return text.replaceAll(/\\(.)/g, "$1");
  }

  #match(pattern: RegExp): RegExpExecArray {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text);
    if (found === null) throw this.#refusal();
    this.#at = pattern.lastIndex;
    return found;
  }

  #has(char: string): boolean {
    if (this.#text[this.#at] !== char) return false;
    this.#at += 1;
    return true;
  }

  #skipSpace(): boolean {
    const start = this.#at;
    while (/\s/.test(this.#text[this.#at] ?? "")) this.#at += 1;
    return this.#at > start;
  }

  #refusal(): TypeError {
    return new TypeError(`Parser error: the selector "${this.#text}" is invalid or not supported.`);
  }
}

const COMPARISONS: Readonly<Record<string, (value: string, wanted: string) => boolean>> = {
  "=": (value, wanted) => value === wanted,
  "~=": (value, wanted) => wanted !== "" && value.split(/\s+/).includes(wanted),
  "|=": (value, wanted) => value === wanted || value.startsWith(`${wanted}-`),
  "^=": (value, wanted) => wanted !== "" && value.startsWith(wanted),
  "$=": (value, wanted) => wanted !== "" && value.endsWith(wanted),
  "*=": (value, wanted) => wanted !== "" && value.includes(wanted),
};

function valueOf({ attributes }: OpenElement, name: string): string | undefined {
  return attributes.find((attribute) => attribute.name === name)?.value;
}
