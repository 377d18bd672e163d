/** Neutral events into chunks of a streamed Gemini response. */
import type { Citation, Part, SearchCall } from "../neutral/part.ts";
import type { StopReason } from "../neutral/response.ts";
import type { StreamEncoder, StreamEvent } from "../neutral/stream-event.ts";
import type { NeutralUsage } from "../neutral/usage.ts";
import type { ResponseContext } from "../options.ts";
import { NO_SIGNATURE } from "../signatures.ts";
import { encodeGeminiCitations } from "./citations.ts";
import { encodeGeminiError } from "./encode-error.ts";
import { encodeGeminiParts } from "./encode-response.ts";
import { encodeGeminiSearches } from "./searches.ts";
import { encodeGeminiFinish } from "./stop-reason.ts";
import { encodeGeminiUsage } from "./usage.ts";

type ToolStart = Extract<StreamEvent, { type: "tool_start" }>;

export class GeminiStreamEncoder implements StreamEncoder {
  readonly #context: ResponseContext;
  /** Arguments are an object here, so a call is sent when it is whole. */
  readonly #calls = new Map<number, { readonly start: ToolStart; text: string }>();
  readonly #citations: Citation[] = [];
  readonly #searches: SearchCall[] = [];
  heldLength = 0;
  #tail: string | null = null;
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
        this.#setTail(event.id, event.model);
        return "";
      case "text":
        return this.#part({ type: "text", text: event.text });
      case "refusal":
        return this.#part({ type: "refusal", text: event.text });
      case "reasoning":
        return this.#part({ type: "reasoning", text: event.text, ...NO_SIGNATURE });
      case "reasoning_signature":
        return event.signature === null ? "" : this.#part({ ...event, type: "reasoning", text: "" });
      case "text_signature":
        return this.#part({ type: "text", text: "", signature: event.signature });
      case "citation":
        this.#citations.push(event.citation);
        return "";
      case "search":
        this.#searches.push(event.search);
        return "";
      case "tool_start":
        this.#calls.set(event.key, { start: event, text: "" });
        return "";
      case "tool_delta": {
        const call = this.#calls.get(event.key);
        if (call !== undefined) call.text += event.text;
        this.heldLength += event.text.length;
        return "";
      }
      case "tool_end":
        return this.#call(event.key);
      case "usage":
        this.#usage = event.usage;
        return "";
      case "finish":
        this.#reason = event.reason;
        return "";
      case "break":
        return "";
      case "end":
        return this.#end();
      case "error":
        return `data: ${JSON.stringify(encodeGeminiError(event.error))}\n\n`;
    }
  }

  #setTail(id: string | null, model: string | null): string {
    const context = this.#context;
    const tail = {
      modelVersion: context.responseModel ?? model ?? context.model,
      responseId: id ?? context.newId("resp_"),
    };
    this.#tail = `,${JSON.stringify(tail).slice(1)}\n\n`;
    return this.#tail;
  }

  #part(part: Part): string {
    const content = { role: "model", parts: encodeGeminiParts([part]) };
    return this.#chunk(`"content":${JSON.stringify(content)},"index":0`, "");
  }

  #chunk(candidate: string, rest: string): string {
    return `data: {"candidates":[{${candidate}}]${rest}${this.#tail ?? this.#setTail(null, null)}`;
  }

  #call(key: number): string {
    const call = this.#calls.get(key);
    if (call === undefined) return "";
    this.#calls.delete(key);
    const { id, name, isCustom, signature } = call.start;
    return this.#part({
      type: "tool_call",
      id,
      name,
      arguments: call.text,
      isCustom,
      ...(signature === null ? {} : { signature }),
    });
  }

  #end(): string {
    const calls = [...this.#calls.keys()].map((key) => this.#call(key)).join("");
    const last = {
      content: { role: "model", parts: [] },
      finishReason: encodeGeminiFinish(this.#reason ?? "stop"),
      index: 0,
      ...encodeGeminiCitations(this.#citations),
      ...encodeGeminiSearches(this.#searches),
    };
    const usage =
      this.#usage === null ? "" : `,"usageMetadata":${JSON.stringify(encodeGeminiUsage(this.#usage))}`;
    return calls + this.#chunk(JSON.stringify(last).slice(1, -1), usage);
  }
}
