/** The output item of a streamed response that is being written: its events from `added` to `done`. */
import type { Citation } from "../neutral/part.ts";
import type { NewId } from "../response-codec.ts";
import { NO_SIGNATURE, type Signature } from "../signatures.ts";
import type { BlockKind, ToolStart } from "../stream/block-sequencer.ts";
import { encodeAnnotation, encodeCallItem, encodeOutputText, encodeReasoningItem } from "./output-item.ts";

type Fields = Record<string, unknown>;
type Send = (type: string, fields: Fields) => void;

const DELTA_TYPES: Readonly<Record<Exclude<BlockKind, "tool">, string>> = {
  text: "response.output_text.delta",
  refusal: "response.refusal.delta",
  reasoning: "response.reasoning_summary_text.delta",
};

const PREFIXES: Readonly<Record<Exclude<BlockKind, "tool">, string>> = {
  text: "msg_",
  refusal: "msg_",
  reasoning: "rs_",
};

export class OpenItem {
  /** The type of this item's delta events, and the JSON text of their fields that no delta changes. */
  readonly deltaType: string;
  readonly deltaFields: string;
  readonly #kind: BlockKind;
  readonly #tool: ToolStart | null;
  readonly #id: string;
  readonly #place: Fields;
  readonly #send: Send;
  readonly #citations: Citation[] = [];
  #text = "";
  #signature: Signature = NO_SIGNATURE;
  #hasPart = false;

  constructor(kind: BlockKind, tool: ToolStart | null, outputIndex: number, newId: NewId, send: Send) {
    this.#kind = kind;
    this.#tool = tool;
    this.#send = send;
    const prefix = kind === "tool" ? (tool?.isCustom === true ? "ctc_" : "fc_") : PREFIXES[kind];
    this.#id = newId(prefix);
    this.#place = { item_id: this.#id, output_index: outputIndex };
    if (kind === "tool") {
      this.deltaType =
        tool?.isCustom === true
          ? "response.custom_tool_call_input.delta"
          : "response.function_call_arguments.delta";
    } else this.deltaType = DELTA_TYPES[kind];
    const part = kind === "tool" ? {} : kind === "reasoning" ? { summary_index: 0 } : { content_index: 0 };
    const logprobs = kind === "text" ? { logprobs: [] } : {};
    this.deltaFields = `${JSON.stringify({ ...this.#place, ...part, ...logprobs }).slice(1, -1)},`;
    this.#send("response.output_item.added", {
      output_index: outputIndex,
      item: this.#encode("in_progress"),
    });
    if (kind === "text" || kind === "refusal") this.#addPart();
  }

  add(text: string): void {
    if (!this.#hasPart && this.#kind === "reasoning") this.#addPart();
    this.#text += text;
  }

  cite(citation: Citation): void {
    this.#citations.push(citation);
    this.#send("response.output_text.annotation.added", {
      ...this.#place,
      content_index: 0,
      annotation_index: this.#citations.length - 1,
      annotation: encodeAnnotation(citation, this.#text.length),
    });
  }

  sign(signature: Signature): void {
    this.#signature = signature;
  }

  /** Sends the closing events and returns the finished item. */
  close(): Fields {
    const place = this.#place;
    const text = this.#text;
    if (this.#kind === "tool") {
      if (this.#tool?.isCustom === true)
        this.#send("response.custom_tool_call_input.done", { ...place, input: text });
      else
        this.#send("response.function_call_arguments.done", {
          ...place,
          name: this.#tool?.name,
          arguments: text,
        });
    } else if (this.#kind === "reasoning") {
      if (this.#hasPart) {
        this.#send("response.reasoning_summary_text.done", { ...place, summary_index: 0, text });
        this.#send("response.reasoning_summary_part.done", {
          ...place,
          summary_index: 0,
          part: this.#part(),
        });
      }
    } else {
      if (this.#kind === "text") {
        this.#send("response.output_text.done", { ...place, content_index: 0, text, logprobs: [] });
      } else this.#send("response.refusal.done", { ...place, content_index: 0, refusal: text });
      this.#send("response.content_part.done", { ...place, content_index: 0, part: this.#part() });
    }
    const item = this.#encode("completed");
    this.#send("response.output_item.done", { output_index: place["output_index"], item });
    return item;
  }

  #addPart(): void {
    this.#hasPart = true;
    if (this.#kind === "reasoning") {
      this.#send("response.reasoning_summary_part.added", {
        ...this.#place,
        summary_index: 0,
        part: this.#part(),
      });
    } else
      this.#send("response.content_part.added", { ...this.#place, content_index: 0, part: this.#part() });
  }

  #part(): Fields {
    if (this.#kind === "reasoning") return { type: "summary_text", text: this.#text };
    if (this.#kind === "refusal") return { type: "refusal", refusal: this.#text };
    return encodeOutputText(this.#text, this.#citations);
  }

  #encode(status: "in_progress" | "completed"): Fields {
    const tool = this.#tool;
    if (tool !== null) {
      const call = {
        id: tool.id,
        name: tool.name,
        arguments: this.#text,
        isCustom: tool.isCustom,
        ...(tool.namespace === null ? {} : { namespace: tool.namespace }),
      };
      return encodeCallItem(call, this.#id, status);
    }
    if (this.#kind === "reasoning") {
      return encodeReasoningItem({ type: "reasoning", text: this.#text, ...this.#signature }, () => this.#id);
    }
    return {
      id: this.#id,
      type: "message",
      status,
      role: "assistant",
      content: this.#hasPart && status === "completed" ? [this.#part()] : [],
    };
  }
}
