/**
 * Names and ids of tools within the limits of the target.
 *
 * Names longer than the target allows, names inside a namespace, and custom tools get a name of their own; the map
 * `renamed` leads back. Both directions are pure functions of the name, so a call in the history and the definition of
 * its tool always agree.
 */
import type { OriginalTool } from "./options.ts";

/** Longest name, and the characters that are not allowed. */
export interface NameRule {
  readonly maxLength: number;
  readonly maxIdLength: number;
}

export const OPENAI_NAMES: NameRule = { maxLength: 64, maxIdLength: 40 };
export const RESPONSES_NAMES: NameRule = { maxLength: 64, maxIdLength: 64 };
export const MESSAGES_NAMES: NameRule = { maxLength: 128, maxIdLength: 128 };
export const GEMINI_NAMES: NameRule = { maxLength: 64, maxIdLength: 128 };

const FORBIDDEN = /[^a-zA-Z0-9_-]/g;

export class ToolNames {
  readonly renamed = new Map<string, OriginalTool>();
  readonly #rule: NameRule;

  constructor(rule: NameRule) {
    this.#rule = rule;
  }

  /** The target's name of a tool. `custom` says that the target gets a function in place of a custom tool. */
  name(name: string, namespace: string | null, custom: boolean): string {
    const full = namespace === null ? name : `${namespace}__${name}`;
    const short = fit(full, this.#rule.maxLength);
    if (custom || short !== name) this.renamed.set(short, { name, namespace, custom });
    return short;
  }

  id(id: string): string {
    return fit(id, this.#rule.maxIdLength);
  }
}

/** `text` itself if it has only allowed characters and fits, else a readable name that is as unique as a 53-bit hash. */
function fit(text: string, maxLength: number): string {
  if (text.length <= maxLength && text.search(FORBIDDEN) < 0) return text;
  const suffix = `_${hash(text)}`;
  return text.replace(FORBIDDEN, "_").slice(0, maxLength - suffix.length) + suffix;
}

/** Two 32-bit FNV-1a sums with different seeds: no security, only names that do not collide by accident. */
function hash(text: string): string {
  let a = 0x811c9dc5;
  let b = 0x01000193;
  for (let i = 0; i < text.length; i++) {
    a = Math.imul(a ^ text.charCodeAt(i), 0x01000193);
    b = Math.imul(b ^ text.charCodeAt(i), 0x85ebca6b);
  }
  return ((a >>> 0) * 0x20_0000 + ((b >>> 0) & 0x1f_ffff)).toString(36);
}
