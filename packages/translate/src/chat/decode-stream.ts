/** Chunks of a chat completion into neutral events. Only the first choice is read: requests never ask for more. */
import { isRecord, listOf, numberOrNull, recordOf, textOf, textOrNull, type Json } from "../json.ts";
import type { StreamDecoder, StreamEvent } from "../neutral/stream-event.ts";
import type { NewId } from "../response-codec.ts";
import { decodeOpenAiError } from "./decode-error.ts";
import { readContent } from "./content.ts";
import { decodeAnnotations, decodeSources } from "./decode-response.ts";
import { decodeReasoningDetail, reasoningTextOf } from "./reasoning-fields.ts";
import { decodeFinishReason } from "./stop-reason.ts";
import { decodeChatUsage } from "./usage.ts";

interface Call {
  readonly key: number;
  readonly id: string;
  /** Arguments that came before the name. */
  early: string;
  isStarted: boolean;
  hasArguments: boolean;
}

export class ChatStreamDecoder implements StreamDecoder {
  readonly #newId: NewId;
  #isStarted = false;
  #isFinished = false;
  #hasRefusal = false;
  #hasAnnotations = false;
  /** The last chunk with sources of the whole answer, which every chunk of Perplexity repeats. */
  #sources: Json | null = null;
  /** The latest call of each index. */
  readonly #calls = new Map<number, Call>();
  #callCount = 0;

  constructor(newId: NewId) {
    this.#newId = newId;
  }

  decode(_event: string, data: string, emit: (event: StreamEvent) => void): void {
    if (data === "[DONE]") {
      // An upstream that says DONE without a reason has nothing more to say: `stop` is what clients assume.
      if (!this.#isFinished) this.#finish(null, emit);
      emit({ type: "end" });
      return;
    }
    const chunk = recordOf(JSON.parse(data));
    if (chunk["error"] != null) {
      const status = numberOrNull(recordOf(chunk["error"])["code"]) ?? 500;
      emit({ type: "error", error: decodeOpenAiError(status >= 400 ? status : 500, chunk) });
      return;
    }
    if (!this.#isStarted) {
      this.#isStarted = true;
      emit({
        type: "start",
        id: textOrNull(chunk["id"]),
        model: textOrNull(chunk["model"]),
        created: numberOrNull(chunk["created"]),
        usage: null,
      });
    }
    if (chunk["search_results"] !== undefined || chunk["citations"] !== undefined) this.#sources = chunk;
    const choice = listOf(chunk["choices"])[0];
    if (isRecord(choice)) this.#decodeChoice(choice, emit);
    const usage = chunk["usage"];
    if (isRecord(usage)) emit({ type: "usage", usage: decodeChatUsage(usage) });
  }

  /** Some providers never send [DONE]. */
  finish(): boolean {
    return this.#isFinished;
  }

  #decodeChoice(choice: Json, emit: (event: StreamEvent) => void): void {
    const { delta } = choice;
    if (isRecord(delta)) {
      this.#decodeReasoning(delta, emit);
      const { content, refusal, annotations } = delta;
      // Nearly every delta of nearly every provider.
      if (typeof content === "string") {
        if (content !== "") emit({ type: "text", text: content });
      } else for (const { type, text } of readContent(content)) emit({ type, text });
      if (typeof refusal === "string" && refusal !== "") {
        this.#hasRefusal = true;
        emit({ type: "refusal", text: refusal });
      }
      if (annotations !== undefined) {
        this.#hasAnnotations = true;
        for (const citation of decodeAnnotations(annotations)) emit({ type: "citation", citation });
      }
      if (delta["tool_calls"] != null) {
        for (const call of listOf(delta["tool_calls"])) this.#decodeCall(recordOf(call), emit);
      }
    }
    if (choice["finish_reason"] != null && !this.#isFinished) this.#finish(choice["finish_reason"], emit);
  }

  #decodeReasoning(delta: Json, emit: (event: StreamEvent) => void): void {
    const details = delta["reasoning_details"];
    if (details == null) {
      const text = reasoningTextOf(delta);
      if (text !== "") emit({ type: "reasoning", text });
      return;
    }
    for (const entry of listOf(details)) {
      if (!isRecord(entry)) continue;
      for (const { text, signature, origin, id, isRedacted } of decodeReasoningDetail(entry)) {
        if (text !== "") emit({ type: "reasoning", text });
        if (signature !== null) emit({ type: "reasoning_signature", signature, origin, id, isRedacted });
      }
    }
  }

  /** A call is known by its index; a provider that gives all calls one index still gives each an id of its own. */
  #decodeCall(delta: Json, emit: (event: StreamEvent) => void): void {
    const isCustom = delta["type"] === "custom" || isRecord(delta["custom"]);
    const called = recordOf(delta[isCustom ? "custom" : "function"]);
    const index = numberOrNull(delta["index"]) ?? Math.max(this.#callCount - 1, 0);
    const id = textOf(delta["id"]);
    const name = textOf(called["name"]);
    let call = this.#calls.get(index);
    if (call === undefined || (id !== "" && id !== call.id && name !== "")) {
      if (call !== undefined) this.#end(call, emit);
      const newId = id === "" ? this.#newId("call_") : id;
      call = { key: this.#callCount, id: newId, early: "", isStarted: false, hasArguments: false };
      this.#callCount += 1;
      this.#calls.set(index, call);
    }
    let text = textOf(called[isCustom ? "input" : "arguments"]);
    if (!call.isStarted) {
      if (name === "") {
        call.early += text;
        return;
      }
      call.isStarted = true;
      const google = recordOf(recordOf(delta["extra_content"])["google"]);
      const signature = textOrNull(google["thought_signature"]);
      emit({ type: "tool_start", key: call.key, id: call.id, name, isCustom, namespace: null, signature });
      text = call.early + text;
    }
    if (text !== "") {
      call.hasArguments = true;
      emit({ type: "tool_delta", key: call.key, text });
    }
  }

  #end(call: Call, emit: (event: StreamEvent) => void): void {
    if (!call.isStarted) return;
    call.isStarted = false;
    if (!call.hasArguments) emit({ type: "tool_delta", key: call.key, text: "{}" });
    emit({ type: "tool_end", key: call.key });
  }

  #finish(reason: unknown, emit: (event: StreamEvent) => void): void {
    this.#isFinished = true;
    if (this.#sources !== null && !this.#hasAnnotations) {
      for (const citation of decodeSources(this.#sources)) emit({ type: "citation", citation });
    }
    for (const call of this.#calls.values()) this.#end(call, emit);
    const stop = decodeFinishReason(reason, this.#callCount > 0);
    const isRefusal = this.#hasRefusal && stop === "stop";
    emit({ type: "finish", reason: isRefusal ? "refusal" : stop, stopSequence: null });
  }
}
