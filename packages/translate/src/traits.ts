/**
 * Traits guessed from a model's name. Callers that know a model better pass their own traits; these are for the rest,
 * and follow the vendors' documentation of November 2026.
 */
import type { Dialect } from "./dialect.ts";
import type { Effort } from "./neutral/request.ts";
import type { ReasoningControl, TargetTraits } from "./options.ts";

/** Every model in use writes at least this much, */
const DEFAULT_MAX_OUTPUT_TOKENS = 8192;
/** and those that reason at least this much. */
const REASONER_MAX_OUTPUT_TOKENS = 32_000;

/** Traits of a target with every gap filled. */
export type FilledTraits = Required<TargetTraits>;

export function defaultTraits(dialect: Dialect, model: string): FilledTraits {
  return fillTraits(dialect, model, {});
}

export function fillTraits(dialect: Dialect, model: string, given: TargetTraits): FilledTraits {
  const name = model.toLowerCase();
  const isOpenAi = isOpenAiModel(name);
  const reasoning = given.reasoning ?? reasoningOf(dialect, name);
  const defaultMax = reasoning === "none" ? DEFAULT_MAX_OUTPUT_TOKENS : REASONER_MAX_OUTPUT_TOKENS;
  return {
    maxOutputTokens: given.maxOutputTokens ?? defaultMax,
    reasoning,
    efforts: given.efforts ?? effortsOf(dialect, name),
    takesEffortWithTools: given.takesEffortWithTools ?? gptVersion(name) < 5.04,
    takesReasoningContent: given.takesReasoningContent ?? false,
    takesCacheControl: given.takesCacheControl ?? false,
    takesCacheBreakpoints: given.takesCacheBreakpoints ?? false,
    takesSystemMessages: given.takesSystemMessages ?? claudeVersion(name) >= 5,
    streamUsage: given.streamUsage ?? true,
    maxTokensField: given.maxTokensField ?? (isOpenAi ? "max_completion_tokens" : "max_tokens"),
    systemRole: given.systemRole ?? "system",
    sampling: given.sampling ?? samplingOf(dialect, name),
    structuredOutput: given.structuredOutput ?? (dialect !== "messages" || takesSchemas(name)),
    webSearch: given.webSearch ?? (dialect === "chat" && /-search(?:-|$)/.test(name)),
  };
}

function isOpenAiModel(name: string): boolean {
  return /^(openai\/)?(gpt-|o[1-9]|chatgpt)/.test(name);
}

/** OpenAI's models that reason take only the default temperature and top_p. */
function isOpenAiReasoner(name: string): boolean {
  return /^(openai\/)?(o[1-9]|gpt-([5-9]|\d\d))/.test(name) && !name.includes("chat");
}

/**
 * Models of the chat and responses dialects, beside OpenAI's own, that are known to take an effort, and which. A model that is not listed takes none:
 * a provider that ignores the field loses little by it, and one that knows no effort refuses the whole call. A provider that takes the field for
 * every model has the trait of its own.
 */
const EFFORTS_OF_OTHERS: readonly (readonly [model: RegExp, efforts: readonly Effort[]])[] = [
  [/(?:^|\/)gpt-oss/, ["low", "medium", "high"]],
  [/(?:^|\/)grok-3-mini/, ["low", "high"]],
  [/(?:^|\/)sonar-deep-research/, ["low", "medium", "high"]],
];

function effortsOfOther(name: string): readonly Effort[] | undefined {
  return EFFORTS_OF_OTHERS.find(([model]) => model.test(name))?.[1];
}

/** A name that means the newest model of a family: it has what that family has. */
const NEWEST = Number.POSITIVE_INFINITY;

/**
 * The version in a Claude model's name as major + minor / 100, such as 4.05 for 4.5; 0 for another model, and for a name that does not say: what is not
 * known takes nothing special.
 */
function claudeVersion(name: string): number {
  if (!name.includes("claude")) return 0;
  const match =
    /claude-(?:[a-z]+-)+(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)/.exec(name) ??
    /claude-(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)/.exec(name);
  if (match === null) return /claude-[a-z]+-latest$/.test(name) ? NEWEST : 0;
  return Number(match[1]) + Number(match[2] ?? 0) / 100;
}

/** Claude writes to a schema from version 4.1 on. What others do with one that the client asks for is theirs to say. */
function takesSchemas(name: string): boolean {
  const version = claudeVersion(name);
  return version === 0 || version >= 4.01;
}

/** The version in a GPT model's name as major + minor / 100, or 0. */
function gptVersion(name: string): number {
  const match = /^(?:openai\/)?gpt-(\d{1,2})(?:\.(\d{1,2}))?(?!\d)/.exec(name);
  return match === null ? 0 : Number(match[1]) + Number(match[2] ?? 0) / 100;
}

function effortsOf(dialect: Dialect, name: string): readonly Effort[] {
  if (dialect === "gemini") return ["minimal", "low", "medium", "high"];
  if (dialect === "messages") {
    const version = claudeVersion(name);
    if (version >= 4.07) return ["low", "medium", "high", "xhigh", "max"];
    return version >= 4.06 ? ["low", "medium", "high", "max"] : ["low", "medium", "high"];
  }
  const others = effortsOfOther(name);
  if (others !== undefined) return others;
  const version = gptVersion(name);
  if (version >= 5.06) return ["none", "low", "medium", "high", "xhigh", "max"];
  if (version >= 5.02) return ["none", "low", "medium", "high", "xhigh"];
  if (version >= 5.01) return ["none", "low", "medium", "high"];
  if (/^(openai\/)?o[1-9]/.test(name)) return ["low", "medium", "high"];
  return version >= 5 ? ["minimal", "low", "medium", "high"] : ["none", "minimal", "low", "medium", "high"];
}

/** 0 for another model, such as those of Gemma. */
function geminiVersion(name: string): number {
  const match = /gemini-(\d+(?:\.\d+)?)/.exec(name);
  if (match === null) return /gemini-[a-z-]+-latest$/.test(name) ? NEWEST : 0;
  return Number(match[1]);
}

/** Gemini 3 and later reject a function call of the current turn without a signature. */
export function needsThoughtSignatures(model: string): boolean {
  return geminiVersion(model.toLowerCase()) >= 3;
}

function reasoningOf(dialect: Dialect, name: string): ReasoningControl {
  if (dialect === "messages") {
    const version = claudeVersion(name);
    if (version >= 4.06) return "adaptive";
    return version >= 3.07 ? "budget" : "none";
  }
  if (dialect === "gemini") {
    const version = geminiVersion(name);
    if (version >= 3) return "effort";
    return version >= 2.5 ? "budget" : "none";
  }
  return isOpenAiReasoner(name) || effortsOfOther(name) !== undefined ? "effort" : "none";
}

function samplingOf(dialect: Dialect, name: string): FilledTraits["sampling"] {
  if (dialect === "messages") {
    const version = claudeVersion(name);
    if (version >= 4.07) return "none";
    return version >= 4 ? "one" : "both";
  }
  return isOpenAiReasoner(name) ? "none" : "both";
}
