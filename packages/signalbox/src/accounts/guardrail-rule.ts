/**
 * A guardrail: what a rule looks for in the texts of a call, and what follows if it is found. Gateways, tokens and accounts have rules of this
 * form; the gateway enforces them (`gateway/guardrails`).
 */
import { z } from "zod";
import { checkPattern, InvalidPatternError } from "../engines/text-scan/index.ts";

export const PII_KINDS = ["email", "phone", "card", "iban", "national_id", "passport", "ip"] as const;
export const SECRET_KINDS = ["key", "private_key", "entropy"] as const;

const MAX_RULES = 50;
const MAX_WORDS = 2000;
const MAX_WORD_LENGTH = 128;
/** Of all words of a list. */
const MAX_WORD_CHARACTERS = 64 * 1024;
const MAX_ALLOWED = 100;
const MAX_INSTRUCTIONS = 16 * 1024;
const MAX_CATEGORIES = 100;
/** Each may be a call of its own. */
const MAX_JUDGED = 8;
/** Instructions of all patterns of a list; each character may cost as many steps at worst. */
const MAX_PROGRAM = 2000;

const common = {
  id: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, "must be 1 to 64 letters, digits, _ or -"),
  /** What is searched: what goes to the provider, what comes back, or both. */
  on: z
    .array(z.enum(["prompt", "response"]))
    .min(1)
    .max(2)
    .default(["prompt", "response"]),
  /** What follows if a text cannot be searched or judged. */
  on_failure: z.enum(["block", "allow"]).default("block"),
  /** What follows for a picture, for sound and for a film, in which a rule on texts has nothing to search. */
  on_media: z.enum(["block", "allow"]).default("allow"),
  /** What the log holds of a text that the rule found: all of it, or a mask in its place; after a judge's finding, `masked` stores no body. */
  logs: z.enum(["full", "masked"]).default("full"),
  enabled: z.boolean().default(true),
};

const base = {
  ...common,
  action: z.enum(["block", "mask", "flag"]),
  /** Texts that are no finding; `*` stands for any text. */
  allow: z.array(z.string().min(1).max(256)).max(MAX_ALLOWED).default([]),
};

/** Rules that ask somebody else. What they find has no place in the text, so nothing can be masked. */
const judged = {
  ...common,
  action: z.enum(["block", "flag"]),
  /** Milliseconds for a verdict. */
  timeout_ms: z.int().min(100).max(60_000).default(10_000),
  /** Whether the text of a stream is judged in pieces of some sentences, or as a whole at its end. */
  stream: z.enum(["window", "hold"]).default("window"),
};

const rule = z.discriminatedUnion("type", [
  z.strictObject({ ...base, type: z.literal("regex"), pattern: z.string().min(1) }),
  z.strictObject({
    ...base,
    type: z.literal("words"),
    words: z.array(z.string().trim().min(1).max(MAX_WORD_LENGTH)).min(1).max(MAX_WORDS),
  }),
  z.strictObject({
    ...base,
    type: z.literal("pii"),
    kinds: z
      .array(z.enum(PII_KINDS))
      .min(1)
      .default([...PII_KINDS]),
  }),
  z.strictObject({
    ...base,
    type: z.literal("secrets"),
    kinds: z
      .array(z.enum(SECRET_KINDS))
      .min(1)
      .default([...SECRET_KINDS]),
  }),
  z
    .strictObject({
      ...judged,
      type: z.literal("model"),
      model: z
        .string()
        .max(256)
        .regex(/^[a-z0-9][a-z0-9-]*\/.+$/, 'must be "provider/model"'),
      /** What the model answers: `safe` or `unsafe` with categories, a verdict on prompt injection, or the results of a moderation endpoint. */
      format: z.enum(["guard", "injection", "moderation"]).default("guard"),
      /** Makes a judge of a model that is none. */
      instructions: z.string().min(1).max(MAX_INSTRUCTIONS).optional(),
      /** Categories that count; default: all. */
      categories: z.array(z.string().min(1).max(64)).min(1).max(MAX_CATEGORIES).optional(),
      /** From which probability on a text is an injection. */
      threshold: z.number().min(0).max(1).optional(),
    })
    .refine(({ format, instructions }) => instructions === undefined || format === "guard", {
      path: ["instructions"],
      error: "are for the format guard",
    })
    .refine(({ format, threshold }) => threshold === undefined || format === "injection", {
      path: ["threshold"],
      error: "is for the format injection",
    })
    .refine(({ format, categories }) => categories === undefined || format !== "injection", {
      path: ["categories"],
      error: "are not part of the format injection",
    }),
  z.strictObject({
    ...judged,
    type: z.literal("webhook"),
    url: z
      .string()
      .max(2048)
      .refine(
        (text) => /^https?:$/.test(URL.parse(text)?.protocol ?? ""),
        "must be an http:// or https:// address",
      ),
  }),
]);

export type GuardrailRule = z.output<typeof rule>;
/** A rule that asks a model or a webhook. */
export type JudgedRule = Extract<GuardrailRule, { type: "model" | "webhook" }>;

export function isJudged(one: GuardrailRule): one is JudgedRule {
  return one.type === "model" || one.type === "webhook";
}

function wordCharactersOf(rules: readonly GuardrailRule[]): number {
  return rules.reduce((sum, one) => sum + (one.type === "words" ? one.words.join("").length : 0), 0);
}

export const guardrailRules = z
  .array(rule)
  .max(MAX_RULES)
  .refine((rules) => new Set(rules.map(({ id }) => id)).size === rules.length, "ids must differ")
  .refine(
    (rules) => rules.filter((one) => isJudged(one)).length <= MAX_JUDGED,
    `at most ${MAX_JUDGED} rules may ask a model or a webhook`,
  )
  .refine(
    (rules) => wordCharactersOf(rules) <= MAX_WORD_CHARACTERS,
    `all words may have ${MAX_WORD_CHARACTERS} characters`,
  )
  .superRefine((rules, context) => {
    let size = 0;
    rules.forEach((one, i) => {
      if (one.type !== "regex") return;
      try {
        size += checkPattern(one.pattern);
        if (size > MAX_PROGRAM)
          throw new InvalidPatternError(`all patterns may have ${MAX_PROGRAM} RE2 instructions`);
      } catch (error) {
        if (!(error instanceof InvalidPatternError)) throw error;
        context.addIssue({ code: "custom", path: [i, "pattern"], message: error.message });
      }
    });
  });
