/** A request between two dialects. Null means: the client did not set it. */
import type { CacheMark, Part, TextPart } from "./part.ts";

/** `system` stands for a system or developer text inside the conversation; leading ones are in `NeutralRequest.system`. */
export interface Turn {
  readonly role: "user" | "assistant" | "system";
  readonly parts: readonly Part[];
  /** The path of the turn in the source, for error messages. */
  readonly path: string;
}

export interface FunctionTool {
  readonly kind: "function";
  readonly name: string;
  readonly description: string | null;
  readonly schema: Readonly<Record<string, unknown>> | null;
  readonly strict: boolean | null;
  readonly namespace: string | null;
  readonly cache: CacheMark | null;
}

/** A tool that takes free text. `format` is the grammar in the form of the responses dialect. */
export interface CustomTool {
  readonly kind: "custom";
  readonly name: string;
  readonly description: string | null;
  readonly format: Readonly<Record<string, unknown>> | null;
  readonly namespace: string | null;
}

export type Tool = FunctionTool | CustomTool;

/** The search of the web that the provider runs. */
export interface WebSearch {
  /** The name in the source, for the list of what was left out. */
  readonly field: string;
  /** Searches that one answer may make. */
  readonly maxUses: number | null;
  /** Sites to which the search is limited, and sites that it leaves out. Empty: no such limit. */
  readonly allowedDomains: readonly string[];
  readonly blockedDomains: readonly string[];
  /** Where the user is: `city`, `region`, `country`, `timezone`. */
  readonly location: Readonly<Record<string, string>> | null;
  /** How much of the results the model reads: `low`, `medium` or `high`. */
  readonly contextSize: string | null;
}

export type ToolChoice =
  | {
      readonly mode: "auto" | "required" | "none";
      /** The tools that may be called; undefined for all. */
      readonly only?: readonly string[];
    }
  | {
      readonly mode: "tool";
      readonly name: string;
      readonly isCustom: boolean;
      readonly namespace: string | null;
    }
  | { readonly mode: "web_search" };

export type OutputFormat =
  | { readonly type: "json" }
  | {
      readonly type: "schema";
      readonly name: string | null;
      readonly description: string | null;
      readonly schema: Readonly<Record<string, unknown>>;
      readonly strict: boolean | null;
    };

export type Effort = "none" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max";

export interface Reasoning {
  readonly effort: Effort | null;
  readonly budgetTokens: number | null;
  /** The client wants to see the reasoning, or a summary of it. Null: the dialect's default. */
  readonly isVisible: boolean | null;
}

export interface NeutralRequest {
  system: readonly TextPart[];
  turns: readonly Turn[];
  tools: readonly Tool[];
  webSearch: WebSearch | null;
  toolChoice: ToolChoice | null;
  parallelTools: boolean | null;
  maxTokens: number | null;
  temperature: number | null;
  topP: number | null;
  topK: number | null;
  frequencyPenalty: number | null;
  presencePenalty: number | null;
  seed: number | null;
  stop: readonly string[];
  format: OutputFormat | null;
  verbosity: string | null;
  reasoning: Reasoning | null;
  /** An opaque id of the end user. */
  user: string | null;
  /** Groups requests that share a prompt prefix (chat, responses). */
  cacheKey: string | null;
  /** The whole prompt is to be cached (messages: top-level `cache_control`). */
  cache: CacheMark | null;
  metadata: Readonly<Record<string, unknown>> | null;
  serviceTier: string | null;
  logprobs: boolean | null;
  topLogprobs: number | null;
  stream: boolean;
  includeUsage: boolean;
}

export function emptyRequest(): NeutralRequest {
  return {
    system: [],
    turns: [],
    tools: [],
    webSearch: null,
    toolChoice: null,
    parallelTools: null,
    maxTokens: null,
    temperature: null,
    topP: null,
    topK: null,
    frequencyPenalty: null,
    presencePenalty: null,
    seed: null,
    stop: [],
    format: null,
    verbosity: null,
    reasoning: null,
    user: null,
    cacheKey: null,
    cache: null,
    metadata: null,
    serviceTier: null,
    logprobs: null,
    topLogprobs: null,
    stream: false,
    includeUsage: false,
  };
}
