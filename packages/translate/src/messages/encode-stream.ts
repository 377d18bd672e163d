/** Neutral events into the events of a streamed message. */
import type { Citation, SearchCall } from "../neutral/part.ts";
import type { StopReason } from "../neutral/response.ts";
import type { StreamEncoder, StreamEvent } from "../neutral/stream-event.ts";
import type { NeutralUsage } from "../neutral/usage.ts";
import type { ResponseContext } from "../options.ts";
import { packSignature, type Signature } from "../signatures.ts";
import { BlockSequencer, type BlockKind, type BlockSink, type ToolStart } from "../stream/block-sequencer.ts";
import { encodeCitation } from "./citations.ts";
import { encodeMessagesError } from "./encode-error.ts";
import { encodeSearch, encodeSearchCount } from "./search-blocks.ts";
import { encodeStopReason } from "./stop-reason.ts";
import { encodeMessagesUsage, UNKNOWN_USAGE } from "./usage.ts";

export class MessagesStreamEncoder implements StreamEncoder, BlockSink {
  readonly #context: ResponseContext;
  readonly #blocks = new BlockSequencer(this);
  #out = "";
  #hasBegun = false;
  #index = 0;
  #kind: BlockKind = "text";
  /** Reasoning opens its block with the first text or signature, because a redacted block has another type. */
  #isPending = false;
  #reason: StopReason | null = null;
  #stopSequence: string | null = null;
  #usage: NeutralUsage | null = null;
  #searches = 0;

  constructor(context: ResponseContext) {
    this.#context = context;
  }

  get heldLength(): number {
    return this.#blocks.waitedLength;
  }

  /** Clients measure the time to `message_start`; it need not wait for the first token. */
  begin(): string {
    if (this.#hasBegun) return "";
    this.#start(null, null, null);
    return this.#flush();
  }

  encode(event: StreamEvent): string {
    if (event.type === "start") {
      if (!this.#hasBegun) this.#start(event.id, event.model, event.usage);
      this.#usage = event.usage ?? this.#usage;
      return this.#flush();
    }
    if (event.type === "error") {
      this.#send("error", JSON.stringify(encodeMessagesError(event.error)));
      return this.#flush();
    }
    if (!this.#hasBegun) this.#start(null, null, null);
    if (this.#blocks.take(event)) return this.#flush();
    if (event.type === "usage") this.#usage = event.usage;
    else if (event.type === "finish") {
      this.#reason = event.reason;
      this.#stopSequence = event.stopSequence;
    } else if (event.type === "end") this.#end();
    return this.#flush();
  }

  open(kind: BlockKind, tool: ToolStart | null): void {
    this.#kind = kind;
    this.#isPending = kind === "reasoning";
    if (kind === "tool" && tool !== null) {
      this.#startBlock({ type: "tool_use", id: tool.id, name: tool.name, input: {} });
    } else if (kind !== "reasoning") this.#startBlock({ type: "text", text: "", citations: null });
  }

  delta(text: string): void {
    const json = JSON.stringify(text);
    if (this.#kind === "tool") this.#sendDelta(`"input_json_delta","partial_json":${json}`);
    else if (this.#kind === "reasoning") {
      this.#startThinking();
      this.#sendDelta(`"thinking_delta","thinking":${json}`);
    } else this.#sendDelta(`"text_delta","text":${json}`);
  }

  citation(citation: Citation): void {
    this.#sendDelta(`"citations_delta","citation":${JSON.stringify(encodeCitation(citation, ""))}`);
  }

  signature(signature: Signature): void {
    if (this.#isPending && signature.isRedacted && signature.origin === "messages") {
      this.#isPending = false;
      this.#startBlock({ type: "redacted_thinking", data: signature.signature });
      return;
    }
    const packed = packSignature(signature, "messages");
    if (packed === null) return;
    this.#startThinking();
    this.#sendDelta(`"signature_delta","signature":${JSON.stringify(packed)}`);
  }

  search(search: SearchCall): void {
    this.#searches += 1;
    for (const block of encodeSearch(search, this.#context.newId)) {
      const { input, ...rest } = block;
      this.#startBlock(input === undefined ? block : { ...rest, input: {} });
      if (input !== undefined)
        this.#sendDelta(`"input_json_delta","partial_json":${JSON.stringify(JSON.stringify(input))}`);
      this.#stopBlock();
    }
  }

  close(): void {
    if (this.#isPending) {
      // Reasoning without text and signature: there is nothing to show.
      this.#isPending = false;
      return;
    }
    this.#stopBlock();
  }

  #start(id: string | null, model: string | null, usage: NeutralUsage | null): void {
    this.#hasBegun = true;
    const context = this.#context;
    const message = {
      id: id ?? context.newId("msg_"),
      type: "message",
      role: "assistant",
      model: context.responseModel ?? model ?? context.model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: usage === null ? UNKNOWN_USAGE : encodeMessagesUsage(usage),
    };
    this.#send("message_start", JSON.stringify({ type: "message_start", message }));
  }

  #startThinking(): void {
    if (!this.#isPending) return;
    this.#isPending = false;
    this.#startBlock({ type: "thinking", thinking: "", signature: "" });
  }

  #startBlock(block: Record<string, unknown>): void {
    this.#send(
      "content_block_start",
      `{"type":"content_block_start","index":${this.#index},"content_block":${JSON.stringify(block)}}`,
    );
  }

  #stopBlock(): void {
    this.#send("content_block_stop", `{"type":"content_block_stop","index":${this.#index}}`);
    this.#index += 1;
  }

  #sendDelta(fields: string): void {
    this.#send(
      "content_block_delta",
      `{"type":"content_block_delta","index":${this.#index},"delta":{"type":${fields}}}`,
    );
  }

  #end(): void {
    this.#blocks.finish();
    const delta = {
      stop_reason: encodeStopReason(this.#reason ?? "stop"),
      stop_sequence: this.#stopSequence,
    };
    const usage = {
      ...(this.#usage === null ? UNKNOWN_USAGE : encodeMessagesUsage(this.#usage)),
      ...encodeSearchCount(this.#searches),
    };
    this.#send("message_delta", JSON.stringify({ type: "message_delta", delta, usage }));
    this.#send("message_stop", '{"type":"message_stop"}');
  }

  #send(event: string, data: string): void {
    this.#out += `event: ${event}\ndata: ${data}\n\n`;
  }

  #flush(): string {
    const out = this.#out;
    this.#out = "";
    return out;
  }
}
