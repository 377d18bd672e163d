/** Chunks of a streamed Gemini response (server-sent events, `alt=sse`) into neutral events. */
import { isRecord, listOf, recordOf, textOrNull, type Json } from "../json.ts";
import type { StreamDecoder, StreamEvent } from "../neutral/stream-event.ts";
import type { NewId } from "../response-codec.ts";
import { decodeGeminiCitations } from "./citations.ts";
import { decodeGeminiError } from "./decode-error.ts";
import { decodeGeminiPart } from "./decode-response.ts";
import { decodeGeminiSearches } from "./searches.ts";
import { decodeGeminiFinish } from "./stop-reason.ts";
import { decodeGeminiUsage } from "./usage.ts";

export class GeminiStreamDecoder implements StreamDecoder {
  readonly #newId: NewId;
  #isStarted = false;
  #calls = 0;
  readonly #queries = new Set<string>();
  #finishReason: unknown = null;
  #usage: Json = {};

  constructor(newId: NewId) {
    this.#newId = newId;
  }

  decode(_event: string, data: string, emit: (event: StreamEvent) => void): void {
    const parsed: unknown = JSON.parse(data);
    const chunk = recordOf(parsed);
    if (chunk["error"] != null || Array.isArray(parsed)) {
      emit({ type: "error", error: decodeGeminiError(200, parsed) });
      return;
    }
    if (!this.#isStarted) {
      this.#isStarted = true;
      emit({
        type: "start",
        id: textOrNull(chunk["responseId"]),
        model: textOrNull(chunk["modelVersion"]),
        created: null,
        usage: null,
      });
    }
    const candidate = recordOf(listOf(chunk["candidates"])[0]);
    for (const part of listOf(recordOf(candidate["content"])["parts"]))
      this.#decodePart(recordOf(part), emit);
    for (const citation of decodeGeminiCitations(candidate)) emit({ type: "citation", citation });
    for (const search of decodeGeminiSearches(candidate)) {
      // Several chunks may repeat the grounding.
      if (this.#queries.has(search.query)) continue;
      this.#queries.add(search.query);
      emit({ type: "search", search });
    }
    if (candidate["finishReason"] != null) this.#finishReason = candidate["finishReason"];
    if (recordOf(chunk["promptFeedback"])["blockReason"] !== undefined) this.#finishReason = "SAFETY";
    if (isRecord(chunk["usageMetadata"])) {
      this.#usage = { ...this.#usage, ...chunk["usageMetadata"] };
      emit({ type: "usage", usage: decodeGeminiUsage(this.#usage) });
    }
  }

  /** The dialect has no terminal event: the reason marks the last chunk, and usage may follow it. */
  finish(emit: (event: StreamEvent) => void): boolean {
    if (this.#finishReason === null) return false;
    emit({
      type: "finish",
      reason: decodeGeminiFinish(this.#finishReason, this.#calls > 0),
      stopSequence: null,
    });
    return true;
  }

  #decodePart(json: Json, emit: (event: StreamEvent) => void): void {
    for (const part of decodeGeminiPart(json, this.#newId)) {
      if (part.type === "reasoning") {
        if (part.text !== "") emit({ type: "reasoning", text: part.text });
        if (part.signature !== null) emit({ ...part, type: "reasoning_signature" });
      } else if (part.type === "text") {
        if (part.text !== "") emit({ type: "text", text: part.text });
        if (part.signature !== undefined) emit({ type: "text_signature", signature: part.signature });
      } else if (part.type === "tool_call") {
        // A call arrives whole, so its arguments are one delta.
        const key = this.#calls;
        this.#calls += 1;
        emit({
          type: "tool_start",
          key,
          id: part.id,
          name: part.name,
          isCustom: false,
          namespace: null,
          signature: part.signature ?? null,
        });
        emit({ type: "tool_delta", key, text: part.arguments });
        emit({ type: "tool_end", key });
      }
    }
  }
}
