/** Neutral events into the events of a streamed response. */
import type { Citation, SearchCall } from "../neutral/part.ts";
import type { StopReason } from "../neutral/response.ts";
import type { StreamEncoder, StreamEvent } from "../neutral/stream-event.ts";
import type { NeutralUsage } from "../neutral/usage.ts";
import type { ResponseContext } from "../options.ts";
import type { Signature } from "../signatures.ts";
import { BlockSequencer, type BlockKind, type BlockSink, type ToolStart } from "../stream/block-sequencer.ts";
import { encodeOpenAiError } from "../chat/encode-error.ts";
import { OpenItem } from "./open-item.ts";
import { encodeResponseObject } from "./response-object.ts";
import { encodeSearchItem } from "./search-item.ts";

export class ResponsesStreamEncoder implements StreamEncoder, BlockSink {
  readonly #context: ResponseContext;
  readonly #blocks = new BlockSequencer(this);
  readonly #output: Record<string, unknown>[] = [];
  #textLength = 0;
  #out = "";
  #sequence = 0;
  #hasBegun = false;
  #id = "";
  #created = 0;
  #model = "";
  #item: OpenItem | null = null;
  #reason: StopReason | null = null;
  #usage: NeutralUsage | null = null;

  constructor(context: ResponseContext) {
    this.#context = context;
  }

  /** The last event repeats all text. */
  get heldLength(): number {
    return this.#textLength + this.#blocks.waitedLength;
  }

  begin(): string {
    if (this.#hasBegun) return "";
    this.#start(null, null, null);
    return this.#flush();
  }

  encode(event: StreamEvent): string {
    if (event.type === "start") {
      if (!this.#hasBegun) this.#start(event.id, event.model, event.created);
      return this.#flush();
    }
    if (event.type === "error") {
      const { message, code, param } = encodeOpenAiError(event.error)["error"] as Record<string, unknown>;
      // The documented event is flat; the provider's own stream also has the nested error that its SDK throws.
      this.#send("error", { code, message, param, ...encodeOpenAiError(event.error) });
      return this.#flush();
    }
    if (!this.#hasBegun) this.#start(null, null, null);
    if (this.#blocks.take(event)) return this.#flush();
    if (event.type === "usage") this.#usage = event.usage;
    else if (event.type === "finish") this.#reason = event.reason;
    else if (event.type === "end") this.#end();
    return this.#flush();
  }

  open(kind: BlockKind, tool: ToolStart | null): void {
    this.#item = new OpenItem(kind, tool, this.#output.length, this.#context.newId, (type, fields) =>
      this.#send(type, fields),
    );
  }

  delta(text: string): void {
    const item = this.#item;
    if (item === null) return;
    item.add(text);
    this.#textLength += text.length;
    this.#out +=
      `event: ${item.deltaType}\ndata: {"type":"${item.deltaType}","sequence_number":${this.#sequence},` +
      `${item.deltaFields}"delta":${JSON.stringify(text)}}\n\n`;
    this.#sequence += 1;
  }

  citation(citation: Citation): void {
    this.#item?.cite(citation);
  }

  signature(signature: Signature): void {
    this.#item?.sign(signature);
  }

  close(): void {
    if (this.#item !== null) this.#output.push(this.#item.close());
    this.#item = null;
  }

  search(search: SearchCall): void {
    const id = this.#context.newId("ws_");
    const place = { output_index: this.#output.length };
    const item = encodeSearchItem(search, id, "completed");
    this.#send("response.output_item.added", { ...place, item: encodeSearchItem(search, id, "in_progress") });
    for (const state of ["in_progress", "searching", "completed"]) {
      this.#send(`response.web_search_call.${state}`, { ...place, item_id: id });
    }
    this.#send("response.output_item.done", { ...place, item });
    this.#output.push(item);
  }

  #start(id: string | null, model: string | null, created: number | null): void {
    const context = this.#context;
    this.#hasBegun = true;
    this.#id = id ?? context.newId("resp_");
    this.#created = created ?? context.now;
    this.#model = context.responseModel ?? model ?? context.model;
    this.#send("response.created", { response: this.#response(null) });
    this.#send("response.in_progress", { response: this.#response(null) });
  }

  #end(): void {
    this.#blocks.finish();
    const response = this.#response(this.#reason ?? "stop");
    const type = response["status"] === "incomplete" ? "response.incomplete" : "response.completed";
    this.#send(type, { response });
  }

  #response(stopReason: StopReason | null): Record<string, unknown> {
    return encodeResponseObject(
      {
        id: this.#id,
        created: this.#created,
        model: this.#model,
        output: this.#output,
        stopReason,
        usage: stopReason === null ? null : this.#usage,
      },
      this.#context,
    );
  }

  #send(type: string, fields: Record<string, unknown>): void {
    const data = JSON.stringify({ type, sequence_number: this.#sequence, ...fields });
    this.#sequence += 1;
    this.#out += `event: ${type}\ndata: ${data}\n\n`;
  }

  #flush(): string {
    const out = this.#out;
    this.#out = "";
    return out;
  }
}
