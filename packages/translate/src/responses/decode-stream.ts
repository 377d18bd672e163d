/** Events of a streamed response into neutral events. */
import { decodeOpenAiError } from "../chat/decode-error.ts";
import { decodeAnnotations } from "../chat/decode-response.ts";
import { isRecord, numberOrNull, recordOf, textOf, textOrNull, type Json } from "../json.ts";
import type { StreamDecoder, StreamEvent } from "../neutral/stream-event.ts";
import { decodeReasoningItem } from "./decode-input.ts";
import { stopReasonOf } from "./decode-response.ts";
import { decodeSearchItem, isSearch } from "./search-item.ts";
import { decodeResponsesUsage } from "./usage.ts";

export class ResponsesStreamDecoder implements StreamDecoder {
  /** Calls whose arguments came in deltas, by `output_index`. */
  readonly #streamed = new Set<number>();
  #hasCalls = false;
  #hasRefusal = false;

  decode(_event: string, data: string, emit: (event: StreamEvent) => void): void {
    const payload = recordOf(JSON.parse(data));
    const key = numberOrNull(payload["output_index"]) ?? 0;
    switch (payload["type"]) {
      case "response.output_text.delta":
        emit({ type: "text", text: textOf(payload["delta"]) });
        return;
      case "response.function_call_arguments.delta":
      case "response.custom_tool_call_input.delta":
        this.#streamed.add(key);
        emit({ type: "tool_delta", key, text: textOf(payload["delta"]) });
        return;
      case "response.reasoning_summary_text.delta":
      case "response.reasoning_text.delta":
        emit({ type: "reasoning", text: textOf(payload["delta"]) });
        return;
      case "response.reasoning_summary_part.added":
        if ((numberOrNull(payload["summary_index"]) ?? 0) > 0) emit({ type: "reasoning", text: "\n\n" });
        return;
      case "response.refusal.delta":
        this.#hasRefusal = true;
        emit({ type: "refusal", text: textOf(payload["delta"]) });
        return;
      case "response.output_text.annotation.added":
        for (const citation of decodeAnnotations([payload["annotation"]]))
          emit({ type: "citation", citation });
        return;
      case "response.output_item.added":
        this.#startItem(key, recordOf(payload["item"]), emit);
        return;
      case "response.output_item.done":
        this.#endItem(key, recordOf(payload["item"]), emit);
        return;
      case "response.created": {
        const response = recordOf(payload["response"]);
        emit({
          type: "start",
          id: textOrNull(response["id"]),
          model: textOrNull(response["model"]),
          created: numberOrNull(response["created_at"]),
          usage: null,
        });
        return;
      }
      case "response.completed":
      case "response.incomplete":
        this.#end(recordOf(payload["response"]), emit);
        return;
      case "response.failed":
        emit({ type: "error", error: decodeOpenAiError(500, recordOf(payload["response"])) });
        return;
      case "error":
        emit({
          type: "error",
          error: decodeOpenAiError(500, isRecord(payload["error"]) ? payload : { error: payload }),
        });
        return;
      default:
    }
  }

  finish(): boolean {
    return false;
  }

  #startItem(key: number, item: Json, emit: (event: StreamEvent) => void): void {
    if (item["type"] !== "function_call" && item["type"] !== "custom_tool_call") return;
    this.#hasCalls = true;
    emit({
      type: "tool_start",
      key,
      id: textOf(item["call_id"]),
      name: textOf(item["name"]),
      isCustom: item["type"] === "custom_tool_call",
      namespace: null,
      signature: null,
    });
  }

  #endItem(key: number, item: Json, emit: (event: StreamEvent) => void): void {
    switch (item["type"]) {
      case "function_call":
      case "custom_tool_call": {
        const text = textOf(item[item["type"] === "function_call" ? "arguments" : "input"]);
        if (!this.#streamed.has(key) && text !== "") emit({ type: "tool_delta", key, text });
        emit({ type: "tool_end", key });
        return;
      }
      case "reasoning": {
        const { signature, origin, id, isRedacted } = decodeReasoningItem(item);
        if (signature === null) emit({ type: "break" });
        else emit({ type: "reasoning_signature", signature, origin, id, isRedacted });
        return;
      }
      case "message":
        emit({ type: "break" });
        return;
      case "web_search_call":
        if (isSearch(item)) emit({ type: "search", search: decodeSearchItem(item) });
        return;
      default:
    }
  }

  #end(response: Json, emit: (event: StreamEvent) => void): void {
    if (isRecord(response["usage"])) emit({ type: "usage", usage: decodeResponsesUsage(response["usage"]) });
    const reason = stopReasonOf(response, (type) =>
      type === "tool_call" ? this.#hasCalls : type === "refusal" && this.#hasRefusal,
    );
    emit({ type: "finish", reason, stopSequence: null });
    emit({ type: "end" });
  }
}
