/**
 * Rules of a token about models and providers: a list of globs, `!` excludes. A name is allowed if no exclusion matches it, and an inclusion
 * matches it or there is none. The order of the rules has no meaning.
 *
 * A rule for models is `provider/model`, split at the first `/`, because slugs of providers contain none; a rule without `/` is about the model of
 * any provider.
 */
import { coversGlob, type Glob, matchesAll, matchesGlob, parseGlob } from "../core/glob.ts";

interface Rule {
  readonly provider: Glob;
  readonly model: Glob;
}

const ANY = parseGlob("*");

export class AllowRules {
  readonly #included: readonly Rule[];
  readonly #excluded: readonly Rule[];

  private constructor(patterns: readonly string[], toRule: (pattern: string) => Rule) {
    this.#included = patterns.filter((pattern) => !pattern.startsWith("!")).map(toRule);
    this.#excluded = patterns
      .filter((pattern) => pattern.startsWith("!"))
      .map((text) => toRule(text.slice(1)));
  }

  static ofModels(patterns: readonly string[]): AllowRules {
    return new AllowRules(patterns, toModelRule);
  }

  static ofProviders(patterns: readonly string[]): AllowRules {
    return new AllowRules(patterns, (pattern) => ({ provider: parseGlob(pattern), model: ANY }));
  }

  /** Names in lower case. */
  allows(provider: string, model: string): boolean {
    return !this.#excluded.some((rule) => matches(rule, provider, model)) && this.#includes(provider, model);
  }

  /** True if no model of the provider is refused, so that the name of the model need not be known. */
  allowsAll(provider: string): boolean {
    if (this.#excluded.some((rule) => matchesGlob(rule.provider, provider))) return false;
    return (
      this.#included.length === 0 ||
      this.#included.some((rule) => matchesGlob(rule.provider, provider) && matchesAll(rule.model))
    );
  }

  /** True if these rules allow whatever `inner` allows. It may be false for rules that are written differently; it is never true wrongly. */
  covers(inner: AllowRules): boolean {
    const keepsExclusions = this.#excluded.every((rule) => inner.#excluded.some((own) => covers(own, rule)));
    if (!keepsExclusions) return false;
    if (this.#included.length === 0) return true;
    return (
      inner.#included.length > 0 &&
      inner.#included.every((rule) => this.#included.some((own) => covers(own, rule)))
    );
  }

  #includes(provider: string, model: string): boolean {
    return this.#included.length === 0 || this.#included.some((rule) => matches(rule, provider, model));
  }
}

function toModelRule(pattern: string): Rule {
  const slash = pattern.indexOf("/");
  if (slash === -1) return { provider: ANY, model: parseGlob(pattern) };
  return { provider: parseGlob(pattern.slice(0, slash)), model: parseGlob(pattern.slice(slash + 1)) };
}

function matches(rule: Rule, provider: string, model: string): boolean {
  return matchesGlob(rule.provider, provider) && matchesGlob(rule.model, model);
}

function covers(outer: Rule, inner: Rule): boolean {
  return coversGlob(outer.provider, inner.provider) && coversGlob(outer.model, inner.model);
}
