/** Translates the model names of a program to a provider and a model of the gateway, as `agents.ai.models` says. */

export interface ModelTarget {
  /** Slug of the provider, as in `/v1/{account}/{gateway}/{provider}`. */
  readonly provider: string;
  readonly model: string;
}

interface Pattern {
  readonly text: string;
  readonly matches: RegExp;
}

export class ModelNames {
  readonly #targets: Readonly<Record<string, string>>;
  /** Longest first: the most specific pattern applies. */
  readonly #patterns: readonly Pattern[];

  constructor(targets: Readonly<Record<string, string>>) {
    this.#targets = targets;
    this.#patterns = Object.keys(targets)
      .filter((name) => name.includes("*"))
      .map((text) => ({ text, matches: toExpression(text) }))
      .toSorted((a, b) => b.text.length - a.text.length);
  }

  /** The names and patterns of the configuration. */
  get configured(): readonly string[] {
    return Object.keys(this.#targets);
  }

  /** Throws for a name that the configuration does not translate and that names no provider itself. */
  find(name: string): ModelTarget {
    const pattern = Object.hasOwn(this.#targets, name)
      ? name
      : this.#patterns.find(({ matches }) => matches.test(name))?.text;
    const target = pattern === undefined ? name : (this.#targets[pattern] ?? name);
    const slash = target.indexOf("/");
    if (slash <= 0 || slash === target.length - 1 || target.startsWith("@")) {
      throw new Error(
        `5007: no such model ${name}: add it to agents.ai.models in the configuration, for example "${name}": "openai/gpt-5-mini"`,
      );
    }
    return { provider: target.slice(0, slash), model: target.slice(slash + 1) };
  }
}

/** `*` stands for any text. */
function toExpression(pattern: string): RegExp {
  const parts = pattern.split("*").map((part) => part.replaceAll(/[$()+.?[\\\]^{|}]/g, "\\$&"));
  return new RegExp(`^${parts.join(".*")}$`);
}
