/** The rules that apply to a call, compiled: all patterns of a place are one automaton, which calls with the same rules share. */
import { createHash } from "node:crypto";
import { setImmediate as nextLoop } from "node:timers/promises";
import { type GuardrailRule, isJudged, type JudgedRule } from "../../accounts/index.ts";
import {
  Automaton,
  type MatchCheck,
  PatternProgram,
  preparePattern,
  type ScanPattern,
  TextScanner,
  toPlainText,
} from "../../engines/text-scan/index.ts";
import { type KnownText, PII } from "./pii.ts";
import { SECRETS } from "./secrets.ts";

export type GuardrailPlace = "prompt" | "response";
/** Who set a rule. */
export type RuleOwner = "gateway" | "dlp" | "guardrails" | "token" | "account" | "call";

export interface OwnedRule {
  readonly owner: RuleOwner;
  readonly rule: GuardrailRule;
}

/** A rule that asks a model or a webhook. */
export interface JudgingRule extends OwnedRule {
  readonly rule: JudgedRule;
}

/** What one pattern finds. */
export interface RuleText {
  /** Null for the place-holders of masks, which are put back. */
  readonly owned: OwnedRule | null;
  /** The word in a mask: `<EMAIL_1>`. */
  readonly label: string;
  readonly isAllowed: (text: string) => boolean;
}

/** A mask in an answer. A provider may know only the beginning of it, so it has a form of its own. */
const MASK = "<[A-Z][A-Z0-9_]{0,63}_[0-9]{1,12}>";
/** Of the word in a mask: a longer one would not be found in the answer. */
const MAX_LABEL = 64;
const MAX_CLEAN_NAMES = 2000;
/** Words of one pattern, so that no pattern takes long to compile. */
const WORDS_AT_ONCE = 64;
/** After so long, other work has its turn. */
const SLICE_MS = 5;

export class RuleSet {
  readonly rules: readonly OwnedRule[];
  /** Differs for different rules: answers are cached by it. */
  readonly fingerprint: string;
  /** Of the rules, in characters. */
  readonly length: number;
  readonly hasMasks: boolean;
  /** Whether a rule asks a model or a webhook. */
  readonly hasJudges: boolean;
  /** What the log must not hold; null if no rule has `logs: masked`. */
  readonly log: LogRules | null;
  readonly #places: Partial<Record<GuardrailPlace, PlaceRules | null>> = {};
  #prepared: Promise<void> | null = null;

  constructor(rules: readonly OwnedRule[]) {
    this.rules = rules;
    this.hasMasks = rules.some(({ rule }) => rule.action === "mask");
    this.hasJudges = rules.some(({ rule }) => isJudged(rule));
    const masked = rules.filter(({ rule }) => rule.logs === "masked");
    this.log = masked.length === 0 ? null : new LogRules(masked);
    const text = JSON.stringify(rules);
    this.length = text.length;
    this.fingerprint = createHash("sha256").update(text).digest("base64url").slice(0, 22);
  }

  /** Compiles all rules, in slices. Without it, they are compiled in one piece when they are needed. */
  prepare(): Promise<void> {
    return (this.#prepared ??= this.#prepare());
  }

  async #prepare(): Promise<void> {
    for (const rules of [this.at("prompt"), this.at("response"), this.log?.texts]) {
      let begunAt = performance.now();
      for (const _ of rules?.compile() ?? []) {
        if (performance.now() - begunAt < SLICE_MS) continue;
        await nextLoop();
        begunAt = performance.now();
      }
    }
  }

  /** Null if no rule looks at the place. */
  at(place: GuardrailPlace): PlaceRules | null {
    let rules = this.#places[place];
    if (rules === undefined) {
      const own = this.rules.filter(({ rule }) => rule.on.includes(place));
      const putsBack = place === "response" && this.hasMasks;
      rules = own.length === 0 && !putsBack ? null : new PlaceRules(own, putsBack);
      this.#places[place] = rules;
    }
    return rules;
  }
}

/** Rules with `logs: masked`. What they look for is masked wherever it stands, because the answer that is stored has the texts of the prompt. */
export class LogRules {
  /** Null if all of them ask somebody else. */
  readonly texts: PlaceRules | null;
  readonly #judged: readonly OwnedRule[];

  constructor(rules: readonly OwnedRule[]) {
    const local = rules.flatMap(({ owner, rule }): OwnedRule[] =>
      isJudged(rule)
        ? []
        : [{ owner, rule: { ...rule, action: "mask", on_failure: "block", on_media: "allow" } }],
    );
    this.texts = local.length === 0 ? null : new PlaceRules(local, false);
    this.#judged = rules.filter(({ rule }) => isJudged(rule));
  }

  /** Whether a judge has found something, which has no place in the text. */
  hasJudged(place: GuardrailPlace, found: readonly FoundBy[]): boolean {
    return found.some(
      (one) =>
        one.place === place &&
        this.#judged.some(({ owner, rule }) => owner === one.owner && rule.id === one.rule),
    );
  }
}

interface FoundBy {
  readonly rule: string;
  readonly owner: RuleOwner;
  readonly place: GuardrailPlace;
}

export class PlaceRules {
  readonly texts: readonly RuleText[];
  readonly judges: readonly JudgingRule[];
  /** A rule that refuses what cannot be searched; null if all let it pass. */
  readonly strict: OwnedRule | null;
  /** A rule that refuses pictures, sound and films; null if all let them pass. */
  readonly strictOnMedia: OwnedRule | null;
  readonly #patterns: readonly ScanPattern[];
  #automaton: Automaton | null = null;
  readonly #checks: readonly (MatchCheck | null)[];
  /** Names of members in which nothing was found: they repeat in every document. */
  readonly #cleanNames = new Set<string>();

  /** `putsBack`: finds the masks of the prompt, too. */
  constructor(rules: readonly OwnedRule[], putsBack: boolean) {
    const patterns: ScanPattern[] = [];
    const texts: RuleText[] = [];
    const checks: (MatchCheck | null)[] = [];
    const add = (
      text: RuleText,
      { source, ignoresCase = false, check = null }: Pattern,
      seesThrough: boolean,
    ) => {
      patterns.push({ source, ignoresCase, seesThrough });
      texts.push(text);
      checks.push(check);
    };
    const judges: JudgingRule[] = [];
    for (const owned of rules) {
      const { owner, rule } = owned;
      if (isJudged(rule)) {
        judges.push({ owner, rule });
        continue;
      }
      const isAllowed = allowed(rule.allow);
      for (const { label, pattern } of patternsOf(rule))
        add({ owned, label, isAllowed }, pattern, rule.type !== "regex");
    }
    if (putsBack) add({ owned: null, label: "", isAllowed: () => false }, { source: MASK }, false);
    this.texts = texts;
    this.judges = judges;
    this.strict = rules.find(({ rule }) => rule.on_failure === "block") ?? null;
    this.strictOnMedia = rules.find(({ rule }) => rule.on_media === "block") ?? null;
    this.#patterns = patterns;
    this.#checks = checks;
  }

  /** Compiles the rules pattern by pattern; each step is one slice. */
  *compile(): Generator<void> {
    if (this.#automaton !== null) return;
    for (const pattern of this.#patterns) {
      preparePattern(pattern);
      yield;
    }
    this.#compiled();
  }

  createScanner(): TextScanner {
    return new TextScanner(this.#compiled(), this.#checks);
  }

  #compiled(): Automaton {
    return (this.#automaton ??= new Automaton(new PatternProgram(this.#patterns)));
  }

  isClean(name: string): boolean {
    return this.#cleanNames.has(name);
  }

  noteClean(name: string): void {
    if (name.length <= 64 && this.#cleanNames.size < MAX_CLEAN_NAMES) this.#cleanNames.add(name);
  }
}

interface Pattern {
  readonly source: string;
  readonly ignoresCase?: boolean;
  readonly check?: MatchCheck | null;
}

interface Labelled {
  readonly label: string;
  readonly pattern: Pattern;
}

function patternsOf(rule: Exclude<GuardrailRule, JudgedRule>): Labelled[] {
  switch (rule.type) {
    case "regex":
      return [{ label: labelOf(rule.id), pattern: { source: rule.pattern } }];
    case "words":
      return Array.from({ length: Math.ceil(rule.words.length / WORDS_AT_ONCE) }, (_, i) => {
        const words = rule.words.slice(i * WORDS_AT_ONCE, (i + 1) * WORDS_AT_ONCE);
        return { label: labelOf(rule.id), pattern: { source: wordsPattern(words), ignoresCase: true } };
      });
    case "pii":
      return rule.kinds.flatMap((kind) => labelled(PII[kind]));
    case "secrets":
      return rule.kinds.flatMap((kind) => labelled(SECRETS[kind]));
  }
}

function labelled({
  label,
  texts,
}: {
  readonly label: string;
  readonly texts: readonly KnownText[];
}): Labelled[] {
  return texts.map((pattern) => ({ label, pattern }));
}

function labelOf(id: string): string {
  const label = id.toUpperCase().replaceAll(/[^A-Z0-9]+/g, "_");
  return (/^[A-Z]/.test(label) ? label : `RULE_${label}`).slice(0, MAX_LABEL);
}

const WORD_EDGE = /[\p{Lu}\p{Ll}\p{Lt}\p{Lm}\p{Nd}_]/u;

/** A word ends where its script ends words; scripts without spaces have no such ends. White space in a phrase may be any. */
function wordsPattern(words: readonly string[]): string {
  return words
    .map((word) => {
      const plain = toPlainText(word).normalize("NFC");
      const quoted = plain
        .replaceAll(/[\\.*+?()|[\]{}^$-]/g, String.raw`\$&`)
        .replaceAll(/\s+/g, String.raw`\s+`);
      const [first = ""] = plain;
      const last = Array.from(plain).at(-1) ?? "";
      return `${WORD_EDGE.test(first) ? String.raw`\b` : ""}${quoted}${WORD_EDGE.test(last) ? String.raw`\b` : ""}`;
    })
    .join("|");
}

function allowed(patterns: readonly string[]): (text: string) => boolean {
  if (patterns.length === 0) return () => false;
  const globs = patterns.map((pattern) => pattern.toLowerCase().split("*"));
  return (text) => {
    const plain = toPlainText(text).toLowerCase();
    return globs.some((parts) => isLike(plain, parts));
  };
}

/** Linear in the text for each part. */
function isLike(text: string, parts: readonly string[]): boolean {
  const [first = "", ...rest] = parts;
  if (rest.length === 0) return text === first;
  if (!text.startsWith(first)) return false;
  const last = rest.at(-1) ?? "";
  let at = first.length;
  for (const part of rest.slice(0, -1)) {
    const found = text.indexOf(part, at);
    if (found === -1) return false;
    at = found + part.length;
  }
  return text.length - at >= last.length && text.endsWith(last);
}
