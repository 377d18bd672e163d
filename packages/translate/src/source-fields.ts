/** How each dialect spells the settings of a request, so that a loss is reported under the name that the client used. */
import type { Dialect } from "./dialect.ts";

type Setting =
  | "toolChoice"
  | "parallelTools"
  | "temperature"
  | "topP"
  | "topK"
  | "frequencyPenalty"
  | "presencePenalty"
  | "seed"
  | "stop"
  | "format"
  | "verbosity"
  | "reasoning"
  | "user"
  | "cacheKey"
  | "cache"
  | "metadata"
  | "serviceTier"
  | "strict"
  | "maxTokens";

const OPENAI = {
  toolChoice: "tool_choice",
  parallelTools: "parallel_tool_calls",
  temperature: "temperature",
  topP: "top_p",
  topK: "top_k",
  frequencyPenalty: "frequency_penalty",
  presencePenalty: "presence_penalty",
  seed: "seed",
  stop: "stop",
  user: "user",
  cacheKey: "prompt_cache_key",
  cache: "cache_control",
  metadata: "metadata",
  serviceTier: "service_tier",
  strict: "tools.strict",
} as const;

const SPELLINGS: Readonly<Record<Dialect, Readonly<Record<Setting, string>>>> = {
  chat: {
    ...OPENAI,
    format: "response_format",
    verbosity: "verbosity",
    reasoning: "reasoning_effort",
    maxTokens: "max_completion_tokens",
  },
  responses: {
    ...OPENAI,
    cache: "prompt_cache_breakpoint",
    format: "text.format",
    verbosity: "text.verbosity",
    reasoning: "reasoning",
    maxTokens: "max_output_tokens",
  },
  messages: {
    ...OPENAI,
    parallelTools: "tool_choice.disable_parallel_tool_use",
    stop: "stop_sequences",
    format: "output_config.format",
    verbosity: "verbosity",
    reasoning: "thinking",
    user: "metadata.user_id",
    maxTokens: "max_tokens",
  },
  gemini: {
    ...OPENAI,
    toolChoice: "toolConfig.functionCallingConfig",
    temperature: "generationConfig.temperature",
    topP: "generationConfig.topP",
    topK: "generationConfig.topK",
    frequencyPenalty: "generationConfig.frequencyPenalty",
    presencePenalty: "generationConfig.presencePenalty",
    seed: "generationConfig.seed",
    stop: "generationConfig.stopSequences",
    format: "generationConfig.responseMimeType",
    verbosity: "verbosity",
    reasoning: "generationConfig.thinkingConfig",
    metadata: "labels",
    maxTokens: "generationConfig.maxOutputTokens",
  },
};

export function sourceField(dialect: Dialect, setting: Setting): string {
  return SPELLINGS[dialect][setting];
}
