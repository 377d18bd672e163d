/** Events of a streamed message into neutral events. */
import { isRecord, numberOrNull, recordOf, textOf, textOrNull, type Json } from "../json.ts";
import type { StreamDecoder, StreamEvent } from "../neutral/stream-event.ts";
import { unpackSignature } from "../signatures.ts";
import { WEB_SEARCH } from "../web-search.ts";
import { decodeCitation } from "./citations.ts";
import { decodeMessagesError } from "./decode-error.ts";
import { decodeSearch } from "./search-blocks.ts";
import { decodeStopReason } from "./stop-reason.ts";
import { decodeMessagesUsage } from "./usage.ts";

const SPLICED = "the provider began a second answer in the same stream";

type BlockKind = "text" | "thinking" | "redacted" | "tool" | "search" | "other";

export class MessagesStreamDecoder implements StreamDecoder {
  /** The provider sends one block after the other. */
  #kind: BlockKind = "other";
  #hasArguments = false;
  #initialInput: Json = {};
  /** The input of the search whose result comes next, as JSON text. */
  #search = "";
  /** Figures of `message_start`, replaced by those of `message_delta`, which may leave some out. */
  #usage: Json = {};
  #isStarted = false;
  #isFinished = false;

  decode(_event: string, data: string, emit: (event: StreamEvent) => void): void {
    const payload = recordOf(JSON.parse(data));
    switch (payload["type"]) {
      case "content_block_delta":
        this.#decodeDelta(numberOrNull(payload["index"]) ?? 0, recordOf(payload["delta"]), emit);
        return;
      case "content_block_start":
        this.#startBlock(numberOrNull(payload["index"]) ?? 0, recordOf(payload["content_block"]), emit);
        return;
      case "content_block_stop":
        this.#stopBlock(numberOrNull(payload["index"]) ?? 0, emit);
        return;
      case "message_start": {
        if (this.#isStarted) {
          // Two answers in one stream: their blocks cannot be told apart.
          emit({ type: "error", error: { status: 502, kind: "server", message: SPLICED } });
          return;
        }
        this.#isStarted = true;
        const message = recordOf(payload["message"]);
        this.#usage = recordOf(message["usage"]);
        emit({
          type: "start",
          id: textOrNull(message["id"]),
          model: textOrNull(message["model"]),
          created: null,
          usage: decodeMessagesUsage(this.#usage),
        });
        return;
      }
      case "message_delta":
        this.#decodeMessageDelta(payload, emit);
        return;
      case "message_stop":
        emit({ type: "end" });
        return;
      case "error":
        emit({ type: "error", error: decodeMessagesError(200, payload) });
        return;
      default:
    }
  }

  finish(): boolean {
    return this.#isFinished;
  }

  #startBlock(key: number, block: Json, emit: (event: StreamEvent) => void): void {
    switch (block["type"]) {
      case "text":
        this.#kind = "text";
        if (textOf(block["text"]) !== "") emit({ type: "text", text: textOf(block["text"]) });
        return;
      case "thinking":
        this.#kind = "thinking";
        if (textOf(block["thinking"]) !== "") emit({ type: "reasoning", text: textOf(block["thinking"]) });
        return;
      case "redacted_thinking": {
        this.#kind = "redacted";
        const sign = unpackSignature(textOf(block["data"]), "messages");
        emit({ type: "reasoning_signature", ...sign, isRedacted: true });
        return;
      }
      case "tool_use":
        this.#kind = "tool";
        this.#hasArguments = false;
        this.#initialInput = recordOf(block["input"]);
        emit({
          type: "tool_start",
          key,
          id: textOf(block["id"]),
          name: textOf(block["name"]),
          isCustom: false,
          namespace: null,
          signature: null,
        });
        return;
      case "server_tool_use":
        this.#kind = block["name"] === WEB_SEARCH ? "search" : "other";
        this.#search = "";
        return;
      case "web_search_tool_result":
        this.#kind = "other";
        emit({
          type: "search",
          search: decodeSearch(textOf(block["tool_use_id"]), queryOf(this.#search), block),
        });
        return;
      default:
        this.#kind = "other";
    }
  }

  #decodeDelta(key: number, delta: Json, emit: (event: StreamEvent) => void): void {
    switch (delta["type"]) {
      case "text_delta":
        if (this.#kind === "text") emit({ type: "text", text: textOf(delta["text"]) });
        return;
      case "thinking_delta":
        emit({ type: "reasoning", text: textOf(delta["thinking"]) });
        return;
      case "signature_delta":
        emit({ type: "reasoning_signature", ...unpackSignature(textOrNull(delta["signature"]), "messages") });
        return;
      case "input_json_delta": {
        const text = textOf(delta["partial_json"]);
        if (this.#kind === "search") this.#search += text;
        // Other server tools stream their input, too; they have no counterpart.
        if (this.#kind !== "tool" || text === "") return;
        this.#hasArguments = true;
        emit({ type: "tool_delta", key, text });
        return;
      }
      case "citations_delta": {
        const citation = decodeCitation(delta["citation"]);
        if (citation !== null) emit({ type: "citation", citation });
        return;
      }
      default:
    }
  }

  #stopBlock(key: number, emit: (event: StreamEvent) => void): void {
    if (this.#kind === "tool") {
      // A call without arguments has no deltas; clients parse the arguments, so they must be JSON.
      if (!this.#hasArguments) emit({ type: "tool_delta", key, text: JSON.stringify(this.#initialInput) });
      emit({ type: "tool_end", key });
    } else if (this.#kind === "text" || this.#kind === "thinking") emit({ type: "break" });
    this.#kind = "other";
  }

  #decodeMessageDelta(payload: Json, emit: (event: StreamEvent) => void): void {
    const delta = recordOf(payload["delta"]);
    if (isRecord(payload["usage"])) {
      const given = Object.entries(payload["usage"]).filter(([, value]) => value !== null);
      this.#usage = { ...this.#usage, ...Object.fromEntries(given) };
      emit({ type: "usage", usage: decodeMessagesUsage(this.#usage) });
    }
    if (delta["stop_reason"] == null) return;
    this.#isFinished = true;
    emit({
      type: "finish",
      reason: decodeStopReason(delta["stop_reason"]),
      stopSequence: textOrNull(delta["stop_sequence"]),
    });
  }
}

function queryOf(input: string): string {
  try {
    return textOf(recordOf(JSON.parse(input))["query"]);
  } catch {
    return "";
  }
}
