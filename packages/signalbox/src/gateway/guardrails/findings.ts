/**
 * What the rules found in one call, and what follows: the call is blocked, the text is masked, or the finding is only noted. A finding names the
 * rule and the place, never the text.
 */
import { createHash, randomInt } from "node:crypto";
import { SignalboxError } from "@signalbox/protocol";
import { dlpNames } from "./dlp-rules.ts";
import type { GuardrailPlace, OwnedRule, RuleOwner, RuleText } from "./rule-set.ts";

/** The strictest first. */
export const ACTIONS = ["block", "mask", "flag"] as const;

export interface Finding {
  readonly rule: string;
  readonly owner: RuleOwner;
  readonly place: GuardrailPlace;
  readonly action: (typeof ACTIONS)[number];
  /** What was found: the label of a mask; the category of a judge; `unread` for a text that could not be searched, `unjudged` for one
   *  without a verdict, `media` for what has none, `unmaskable` for one that stands where nothing can be replaced. */
  readonly kind: string;
  count: number;
}

/** The rules that refuse what cannot be searched; null if there is none. */
interface Strictness {
  readonly strict: OwnedRule | null;
  readonly strictOnMedia: OwnedRule | null;
}

/** A rule refuses the call. */
export class GuardrailBlock extends Error {
  readonly error: SignalboxError;

  constructor(error: SignalboxError) {
    super(error.message);
    this.error = error;
  }
}

const MASKED = /<[A-Z][A-Z0-9_]{0,63}_\d{1,12}>/g;
/** A request that refers to what the provider has kept of an earlier one. */
export const REFERENCE =
  /"(?:previous_response_id|conversation(?:_id)?|thread_id|session_?[iI]d|container)"\s*:\s*(?!\s|null)|"item_reference"/;
/** Most texts have neither, and a whole prompt is not copied for nothing. */
const MAYBE_MASKED = /<|\\u003[cC]/;
const ESCAPED = /\\u003([ce])/gi;
/** Numbers of twelve digits, of which no two calls have the same. */
const FIRST_APART = 10 ** 11;
const LAST_APART = 10 ** 12 - 10 ** 6;

/** More masks of the client are not remembered: a session may last for an hour. */
const MAX_RESERVED = 10_000;
/** In characters: what masked texts may take in memory, each with what is kept beside it. */
const MAX_MASKED = 8 * 1024 * 1024;
const BESIDE_MASK = 128;

export class Findings {
  readonly all: Finding[] = [];
  /** Original → mask, and mask → original, of the prompt. */
  readonly #masks = new Map<string, string>();
  readonly #originals = new Map<string, string>();
  readonly #numbers = new Map<string, number>();
  /** Masks that the prompt had before. */
  readonly #reserved = new Set<string>();
  #firstNumber = 0;
  #reserves = true;
  #maskedLength = 0;

  /** The strictest action that was taken; null if nothing was found. */
  get action(): Finding["action"] | null {
    for (const action of ACTIONS) if (this.all.some((finding) => finding.action === action)) return action;
    return null;
  }

  /** Masks that a client has written itself must not be put back as another text. */
  reserve(text: string): void {
    if (!this.#reserves || !MAYBE_MASKED.test(text)) return;
    const plain = text.replaceAll(ESCAPED, (_, letter: string) => (/c/i.test(letter) ? "<" : ">"));
    for (const [mask] of plain.matchAll(MASKED)) {
      this.#reserved.add(mask);
      if (this.#reserved.size <= MAX_RESERVED) continue;
      // Numbers that no client writes by chance need no list.
      this.numberApart();
      this.#reserved.clear();
      this.#reserves = false;
      return;
    }
  }

  /**
   * The provider may know masks of other calls, which it puts into the answer: the conversation that it keeps, the file of a batch. Masks of this call get
   * numbers that no other call has, so none of those is put back as a text of this call; they stay as they are.
   */
  numberApart(): void {
    if (this.#firstNumber > 0) return;
    this.#firstNumber = randomInt(FIRST_APART, LAST_APART);
    // Masks of a step before this one are not put back any more.
    this.#masks.clear();
    this.#originals.clear();
    this.#numbers.clear();
    this.#maskedLength = 0;
  }

  /** Identifies the texts that were masked; empty if none was. Their numbers do not count: the answer has the texts. */
  get maskKey(): string {
    if (this.#originals.size === 0) return "";
    return createHash("sha256")
      .update(JSON.stringify([...this.#originals.values()]))
      .digest("base64url");
  }

  /** What takes the place of a found text; null if the text stays. Throws `GuardrailBlock`. */
  judge(place: GuardrailPlace, { owned, label, isAllowed }: RuleText, text: string): string | null {
    if (owned === null) return this.#originals.get(text) ?? null;
    if (isAllowed(text)) return null;
    this.#add(owned, place, label, owned.rule.action);
    if (owned.rule.action === "block") throw blocked(place, owned);
    return owned.rule.action === "mask" ? this.#maskOf(place, owned, label, text) : null;
  }

  /** A text that should be masked stands where nothing can be replaced. */
  cannotMask(place: GuardrailPlace, owned: OwnedRule): never {
    // The mask that was found is not one that was made: the row says what happened.
    this.#add(owned, place, "unmaskable", "block");
    throw blocked(place, owned, "it cannot be masked where it stands");
  }

  /** A text cannot be searched. Throws if a rule does not let it pass. */
  unread(place: GuardrailPlace, { strict }: Strictness, reason: string): void {
    if (strict === null) return;
    this.#add(strict, place, "unread", "block");
    throw blocked(place, strict, reason);
  }

  /** A judge found something. Throws if its rule blocks. */
  judged(place: GuardrailPlace, owned: OwnedRule, categories: readonly string[]): void {
    const { action } = owned.rule;
    for (const category of categories.length === 0 ? ["unsafe"] : categories)
      this.#add(owned, place, category, action);
    if (action === "block") throw blocked(place, owned);
  }

  /** A judge gave no verdict. Throws if its rule does not let the text pass. */
  unjudged(place: GuardrailPlace, owned: OwnedRule, reason: string): void {
    const isRefused = owned.rule.on_failure === "block";
    this.#add(owned, place, "unjudged", isRefused ? "block" : "flag");
    if (!isRefused) return;
    const what = place === "prompt" ? "Prompt" : "Response";
    const message = `${what} could not be judged by guardrail ${owned.rule.id}: ${reason}`;
    throw new GuardrailBlock(new SignalboxError("gateway_guardrail_unavailable", { message }));
  }

  /** There is a picture, sound or a film. Throws if a rule does not let it pass. */
  media(place: GuardrailPlace, { strictOnMedia: strict }: Strictness): void {
    if (strict === null) return;
    this.#add(strict, place, "media", "block");
    throw blocked(place, strict, "it contains a picture, sound or a film");
  }

  /** The strictest action of the setting `dlp`, as the original names it; null if it found nothing. */
  get dlpAction(): "BLOCK" | "FLAG" | null {
    const own = this.all.filter(({ owner }) => owner === "dlp");
    if (own.length === 0) return null;
    return own.some(({ action }) => action === "block") ? "BLOCK" : "FLAG";
  }

  /** Value of the header that says what the setting `dlp` found; null if it found nothing. */
  get dlpHeader(): string | null {
    const action = this.dlpAction;
    if (action === null) return null;
    const findings = this.all
      .filter(({ owner }) => owner === "dlp")
      .map(({ rule, place, kind }) => {
        const { policy, profile } = dlpNames(rule);
        return {
          profile: { profile_id: profile, entry_ids: [kind.toLowerCase()] },
          policy_ids: policy === "" ? [] : [policy],
          check: place === "prompt" ? "REQUEST" : "RESPONSE",
        };
      });
    // A header is ASCII; names of policies may be anything.
    return JSON.stringify({ findings, action }).replaceAll(
      /[^\x20-\x7e]/g,
      (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
    );
  }

  /** For the row of the call: null if nothing was found. */
  toJson(): string | null {
    return this.all.length === 0 ? null : JSON.stringify(this.all);
  }

  #add(
    { rule: { id }, owner }: OwnedRule,
    place: GuardrailPlace,
    kind: string,
    action: Finding["action"],
  ): void {
    const known = this.all.find(
      (other) => other.rule === id && other.owner === owner && other.place === place && other.kind === kind,
    );
    if (known === undefined) this.all.push({ rule: id, owner, place, action, kind, count: 1 });
    else known.count += 1;
  }

  #maskOf(place: GuardrailPlace, owned: OwnedRule, label: string, text: string): string {
    const known = this.#masks.get(`${label} ${text}`);
    if (known !== undefined) return known;
    this.#maskedLength += text.length + BESIDE_MASK;
    if (this.#maskedLength > MAX_MASKED) {
      this.#maskedLength = MAX_MASKED;
      throw blocked(place, owned, "it has too many texts to mask");
    }
    let number = this.#numbers.get(label) ?? this.#firstNumber;
    let mask: string;
    do mask = `<${label}_${++number}>`;
    while (this.#reserved.has(mask));
    this.#numbers.set(label, number);
    this.#masks.set(`${label} ${text}`, mask);
    // What the model wrote is not put back.
    if (place === "prompt") this.#originals.set(mask, text);
    return mask;
  }
}

function blocked(place: GuardrailPlace, { rule: { id }, owner }: OwnedRule, reason?: string): GuardrailBlock {
  const isDlp = owner === "dlp";
  const name =
    place === "prompt"
      ? isDlp
        ? "gateway_dlp_request_blocked"
        : "gateway_prompt_blocked"
      : isDlp
        ? "gateway_dlp_response_blocked"
        : "gateway_response_blocked";
  const what = place === "prompt" ? "Prompt" : "Response";
  const by = isDlp ? "data loss prevention, profile" : "guardrail";
  const message = `${what} blocked by ${by} ${isDlp ? dlpNames(id).profile : id}${reason === undefined ? "" : `: ${reason}`}`;
  return new GuardrailBlock(new SignalboxError(name, { message }));
}
