import type { Dialect } from "./dialect.ts";
import type { Effort } from "./neutral/request.ts";

/**
 * How a model takes reasoning settings.
 *
 * - `effort`: a named effort (`reasoning_effort`, `reasoning.effort`, `output_config.effort`, `thinkingLevel`).
 * - `budget`: a number of tokens (`thinking.budget_tokens`, `thinkingBudget`).
 * - `adaptive`: messages only, `thinking: {type: "adaptive"}` with `output_config.effort`.
 * - `none`: the model does not reason.
 */
export type ReasoningControl = "effort" | "budget" | "adaptive" | "none";

/** What the target model and its provider accept. Everything is optional; `defaultTraits` fills the gaps from the model's name. */
export interface TargetTraits {
  /** Used where the target requires a limit (messages) and the request has none. Default 32,000 for models that reason, else 8192. */
  readonly maxOutputTokens?: number;
  readonly reasoning?: ReasoningControl;
  /** Efforts that the model accepts, in rising order. Others are replaced by the nearest, and listed. */
  readonly efforts?: readonly Effort[];
  /** Chat only: the model accepts `reasoning_effort` together with tools. Default: false for GPT-5.4 and later. */
  readonly takesEffortWithTools?: boolean;
  /** Chat only: the provider accepts `reasoning_content` and `reasoning_details` on assistant messages. Default false. */
  readonly takesReasoningContent?: boolean;
  /** Chat only: the provider accepts `cache_control` on content parts. Default false. */
  readonly takesCacheControl?: boolean;
  /** Chat and responses: the provider accepts `prompt_cache_breakpoint` on content parts. Default false. */
  readonly takesCacheBreakpoints?: boolean;
  /** Messages only: the model accepts `role: "system"` inside the conversation. Default: Claude 5 and later. */
  readonly takesSystemMessages?: boolean;
  /** Chat only: the provider accepts `stream_options.include_usage`. Default true. */
  readonly streamUsage?: boolean;
  /** Chat only: the field of the output limit. Default `max_completion_tokens` for OpenAI's own models, else `max_tokens`. */
  readonly maxTokensField?: "max_tokens" | "max_completion_tokens";
  /** Chat only: the role of system texts. Default `system`; every OpenAI-shaped provider accepts it. */
  readonly systemRole?: "system" | "developer";
  /**
   * Sampling settings the model accepts: `both` temperature and top_p, `one` of them (temperature wins), or `none`.
   */
  readonly sampling?: "both" | "one" | "none";
  /** The model accepts a JSON schema for its answer. Default: true but for Claude before 4.1. */
  readonly structuredOutput?: boolean;
  /** The provider searches the web for its models. Default: of chat, models with `search` in their name; otherwise false. */
  readonly webSearch?: boolean;
}

export interface RequestOptions {
  /** Model name that the target sees. */
  readonly model: string;
  readonly target: TargetTraits;
  /** Leave out and list what the target cannot express, instead of throwing `UnsupportedFieldError`. */
  readonly dropUnsupported: boolean;
  /** Makes an id that one dialect requires and the other did not give. The id must begin with `prefix`. */
  readonly newId: (prefix: string) => string;
  /** Seconds since 1970, for `created` fields. */
  readonly now: number;
  /**
   * To messages only: prompts that will be repeated get marks of the prompt cache, if the client has set none and its dialect caches by itself. Default
   * false.
   */
  readonly marksCache?: boolean;
  /** Gemini clients only, whose requests name the stream in the path: the client called `streamGenerateContent`. */
  readonly stream?: boolean;
  /** Model name that the client reads in responses. Default: what the upstream reports, else `model`. */
  readonly responseModel?: string;
}

/** What the translation of a response has to remember of its request. Opaque to callers apart from the first fields. */
export interface ResponseContext {
  /** The dialect of the client: responses are encoded in it. */
  readonly from: Dialect;
  /** The dialect of the upstream: responses are decoded from it. */
  readonly to: Dialect;
  readonly model: string;
  readonly responseModel: string | null;
  readonly stream: boolean;
  /** Chat clients only: a usage chunk was asked for. */
  readonly includeUsage: boolean;
  /** Tools that the client defined under another name or as another kind than the target sees, by the target's name. */
  readonly renamedTools: ReadonlyMap<string, OriginalTool>;
  /** Responses clients only: request fields that a response repeats. */
  readonly echo: Readonly<Record<string, unknown>>;
  readonly newId: (prefix: string) => string;
  readonly now: number;
}

/** A tool as the client defined it. */
export interface OriginalTool {
  readonly name: string;
  /** The responses namespace that contains the tool. */
  readonly namespace: string | null;
  /** A custom (free text) tool of the responses or chat dialect, sent to the target as a function with one string `input`. */
  readonly custom: boolean;
}

export interface TranslatedRequest {
  readonly body: Record<string, unknown>;
  readonly stream: boolean;
  /**
   * Source fields that were left out or weakened, by name without positions (`messages[].reasoning`), without repetition, in the
   * order of discovery. At most 50; `more` stands for the rest.
   */
  readonly dropped: readonly string[];
  readonly context: ResponseContext;
}
