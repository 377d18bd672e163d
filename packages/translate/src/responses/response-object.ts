/** The object `response`: a whole response, and the body of a stream's first and last events. */
import { recordOf, type Json } from "../json.ts";
import type { StopReason } from "../neutral/response.ts";
import type { NeutralUsage } from "../neutral/usage.ts";
import type { ResponseContext } from "../options.ts";
import { encodeResponsesUsage } from "./usage.ts";

type Item = Record<string, unknown>;

export interface ResponseState {
  readonly id: string;
  readonly created: number;
  readonly model: string;
  readonly output: readonly Item[];
  /** Null while the stream runs. */
  readonly stopReason: StopReason | null;
  readonly usage: NeutralUsage | null;
}

/** Request fields that a response repeats, with the values that stand for a field that was not set. */
export function echoOf(request: Json): Item {
  const { format, verbosity } = recordOf(request["text"]);
  return {
    frequency_penalty: request["frequency_penalty"] ?? 0,
    instructions: request["instructions"] ?? null,
    max_output_tokens: request["max_output_tokens"] ?? null,
    max_tool_calls: request["max_tool_calls"] ?? null,
    metadata: request["metadata"] ?? {},
    parallel_tool_calls: request["parallel_tool_calls"] ?? true,
    presence_penalty: request["presence_penalty"] ?? 0,
    previous_response_id: null,
    prompt_cache_key: request["prompt_cache_key"] ?? null,
    reasoning: request["reasoning"] ?? { effort: null, summary: null },
    safety_identifier: request["safety_identifier"] ?? null,
    service_tier: request["service_tier"] ?? "default",
    // Nothing is stored here, whatever the client asked for.
    store: false,
    temperature: request["temperature"] ?? 1,
    text: { format: format ?? { type: "text" }, ...(verbosity == null ? {} : { verbosity }) },
    tool_choice: request["tool_choice"] ?? "auto",
    tools: request["tools"] ?? [],
    top_logprobs: request["top_logprobs"] ?? 0,
    top_p: request["top_p"] ?? 1,
    truncation: request["truncation"] ?? "disabled",
    user: request["user"] ?? null,
  };
}

export function encodeResponseObject(state: ResponseState, context: ResponseContext): Item {
  const { stopReason } = state;
  const incomplete = stopReason === null ? null : incompleteReason(stopReason, state.output);
  return {
    id: state.id,
    object: "response",
    created_at: state.created,
    // There is no clock here.
    completed_at: null,
    status: stopReason === null ? "in_progress" : incomplete === null ? "completed" : "incomplete",
    background: false,
    error: null,
    incomplete_details: incomplete === null ? null : { reason: incomplete },
    model: state.model,
    output: state.output,
    usage: state.usage === null ? null : encodeResponsesUsage(state.usage),
    ...context.echo,
  };
}

/** A refusal in the model's own words is a complete response. */
function incompleteReason(reason: StopReason, output: readonly Item[]): string | null {
  if (reason === "length" || reason === "context_window") return "max_output_tokens";
  return reason === "refusal" && !output.some(hasRefusal) ? "content_filter" : null;
}

function hasRefusal(item: Item): boolean {
  const { content } = item;
  return Array.isArray(content) && content.some((part) => (part as Item)["type"] === "refusal");
}
