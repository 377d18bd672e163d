/** Neutral events into chunks of a chat completion. */
import type { StreamEncoder, StreamEvent } from "../neutral/stream-event.ts";
import type { StopReason } from "../neutral/response.ts";
import type { NeutralUsage } from "../neutral/usage.ts";
import type { ResponseContext } from "../options.ts";
import { geminiReasoning, type Signature } from "../signatures.ts";
import { encodeOpenAiError } from "./encode-error.ts";
import { encodeUrlCitation, googleSignature } from "./encode-response.ts";
import { encodeReasoningDetail, REASONING_FORMATS } from "./reasoning-fields.ts";
import { encodeFinishReason } from "./stop-reason.ts";
import { encodeChatUsage } from "./usage.ts";

export class ChatStreamEncoder implements StreamEncoder {
  readonly #context: ResponseContext;
  /** Everything of a chunk before its delta, which no event changes. Null before the first chunk. */
  #head: string | null = null;
  /** `index` counts tool calls only, whatever blocks the upstream had between them. */
  readonly #indexes = new Map<number, number>();
  #reasoningIndex = 0;
  #hasReasoning = false;
  #hasRefusal = false;
  #length = 0;
  #reason: StopReason | null = null;
  #usage: NeutralUsage | null = null;

  constructor(context: ResponseContext) {
    this.#context = context;
  }

  begin(): string {
    return "";
  }

  encode(event: StreamEvent): string {
    switch (event.type) {
      case "start":
        return this.#start(event.id, event.model, event.created);
      case "text":
        this.#length += event.text.length;
        return this.#chunk(`{"content":${JSON.stringify(event.text)}}`);
      case "refusal":
        this.#hasRefusal = true;
        return this.#chunk(`{"refusal":${JSON.stringify(event.text)}}`);
      case "reasoning":
        return this.#reasoning(event.text);
      case "reasoning_signature":
        return this.#signature(event);
      case "text_signature":
        return this.#signature(geminiReasoning(event.signature));
      case "citation":
        return this.#chunk(
          JSON.stringify({ annotations: [encodeUrlCitation(event.citation, 0, this.#length)] }),
        );
      case "break":
        this.#endReasoning();
        return "";
      case "search":
        // Chat shows what a search has found in annotations only.
        return "";
      case "tool_start":
        return this.#toolStart(event);
      case "tool_delta":
        return this.#toolDelta(event.key, event.text);
      case "tool_end":
        return "";
      case "usage":
        this.#usage = event.usage;
        return "";
      case "finish":
        this.#reason = event.reason;
        return "";
      case "end":
        return this.#end();
      case "error":
        return `data: ${JSON.stringify(encodeOpenAiError(event.error))}\n\n`;
    }
  }

  #start(id: string | null, model: string | null, created: number | null): string {
    const context = this.#context;
    const shownModel = context.responseModel ?? model ?? context.model;
    this.#head =
      `data: {"id":${JSON.stringify(id ?? context.newId("chatcmpl-"))},"object":"chat.completion.chunk",` +
      `"created":${created ?? context.now},"model":${JSON.stringify(shownModel)},"choices":[`;
    return this.#chunk('{"role":"assistant","content":""}');
  }

  /** `delta` is JSON text. */
  #chunk(delta: string, reason: string | null = null): string {
    const opening = this.#head === null ? this.#start(null, null, null) : "";
    const end = reason === null ? "null" : JSON.stringify(reason);
    return `${opening}${this.#head ?? ""}{"index":0,"delta":${delta},"logprobs":null,"finish_reason":${end}}]}\n\n`;
  }

  #reasoning(text: string): string {
    this.#hasReasoning = true;
    const json = JSON.stringify(text);
    return this.#chunk(
      `{"reasoning_content":${json},"reasoning_details":[{"type":"reasoning.text","text":${json},` +
        `"format":"${REASONING_FORMATS[this.#context.to]}","index":${this.#reasoningIndex}}]}`,
    );
  }

  #signature(sign: Signature): string {
    if (sign.signature === null) {
      this.#endReasoning();
      return "";
    }
    const detail = this.#hasReasoning
      ? {
          ...encodeReasoningDetail({ type: "reasoning", text: "x", ...sign }, this.#reasoningIndex),
          text: "",
        }
      : encodeReasoningDetail({ type: "reasoning", text: "", ...sign }, this.#reasoningIndex);
    this.#hasReasoning = true;
    this.#endReasoning();
    return this.#chunk(JSON.stringify({ reasoning_details: [detail] }));
  }

  #endReasoning(): void {
    if (this.#hasReasoning) this.#reasoningIndex += 1;
    this.#hasReasoning = false;
  }

  #toolStart(event: Extract<StreamEvent, { type: "tool_start" }>): string {
    this.#endReasoning();
    const index = this.#indexes.size;
    this.#indexes.set(event.key, event.isCustom ? -1 - index : index);
    const called = event.isCustom
      ? { type: "custom", custom: { name: event.name, input: "" } }
      : { type: "function", function: { name: event.name, arguments: "" } };
    const call = { index, id: event.id, ...called, ...googleSignature(event.signature) };
    return this.#chunk(JSON.stringify({ tool_calls: [call] }));
  }

  #toolDelta(key: number, text: string): string {
    const at = this.#indexes.get(key);
    if (at === undefined) return "";
    const json = JSON.stringify(text);
    return this.#chunk(
      at >= 0
        ? `{"tool_calls":[{"index":${at},"function":{"arguments":${json}}}]}`
        : `{"tool_calls":[{"index":${-1 - at},"custom":{"input":${json}}}]}`,
    );
  }

  #end(): string {
    const last = this.#chunk("{}", encodeFinishReason(this.#reason ?? "stop", this.#hasRefusal));
    const usage =
      this.#context.includeUsage && this.#usage !== null
        ? `${this.#head ?? ""}],"usage":${JSON.stringify(encodeChatUsage(this.#usage))}}\n\n`
        : "";
    return `${last}${usage}data: [DONE]\n\n`;
  }
}
