/**
 * Brings the deltas of a stream into blocks that are opened and closed one after the other, as messages and responses
 * require, although chat completions may mix the arguments of parallel calls.
 *
 * 1. Exactly one block is open at a time, and blocks open in the order in which they began.
 * 2. The open block's deltas pass at once; deltas of later blocks wait.
 * 3. A text or reasoning ends when something else begins. A call ends when the upstream says so, or when another block
 *    waits and its arguments are a complete JSON object, or with the stream.
 */
import type { Citation, SearchCall } from "../neutral/part.ts";
import type { Signature } from "../signatures.ts";
import type { StreamEvent } from "../neutral/stream-event.ts";
import { JsonProgress } from "./json-progress.ts";

export type BlockKind = "text" | "refusal" | "reasoning" | "tool";

/** The call of a `tool` block. */
export type ToolStart = Extract<StreamEvent, { type: "tool_start" }>;

/** Receives the blocks of a stream in order. */
export interface BlockSink {
  open(kind: BlockKind, tool: ToolStart | null): void;
  delta(text: string): void;
  citation(citation: Citation): void;
  signature(signature: Signature): void;
  close(): void;
  /** A search of the provider, between two blocks. */
  search(search: SearchCall): void;
}

type Step =
  | { readonly type: "delta"; readonly text: string }
  | { readonly type: "citation"; readonly citation: Citation }
  | { readonly type: "signature"; readonly signature: Signature };

interface Block {
  readonly kind: BlockKind;
  readonly tool: ToolStart | null;
  /** Stands in place of a block, and has no steps. */
  readonly search: SearchCall | null;
  readonly progress: JsonProgress | null;
  readonly waiting: Step[];
  isOpen: boolean;
  hasEnded: boolean;
}

export class BlockSequencer {
  readonly #sink: BlockSink;
  readonly #blocks: Block[] = [];
  /** Characters that have had to wait. */
  waitedLength = 0;

  constructor(sink: BlockSink) {
    this.#sink = sink;
  }

  /** True if the event belongs to a block. */
  take(event: StreamEvent): boolean {
    switch (event.type) {
      case "text":
      case "refusal":
      case "reasoning":
        if (event.text !== "") this.#step(this.#current(event.type), { type: "delta", text: event.text });
        return true;
      case "citation":
        this.#step(this.#current("text"), { type: "citation", citation: event.citation });
        return true;
      case "reasoning_signature": {
        const block = this.#current("reasoning");
        const { signature, origin, id, isRedacted } = event;
        this.#step(block, { type: "signature", signature: { signature, origin, id, isRedacted } });
        block.hasEnded = true;
        this.#advance();
        return true;
      }
      case "text_signature": {
        this.#endTail();
        const signature: Signature = {
          signature: event.signature,
          origin: "gemini",
          id: null,
          isRedacted: false,
        };
        this.#step(this.#push("reasoning", null), { type: "signature", signature });
        this.#endTail();
        this.#advance();
        return true;
      }
      case "break":
        this.#endTail();
        this.#advance();
        return true;
      case "search":
        this.#endTail();
        this.#push("text", null, event.search).hasEnded = true;
        this.#advance();
        return true;
      case "tool_start":
        this.#endTail();
        if (event.signature !== null) this.take({ type: "text_signature", signature: event.signature });
        this.#push("tool", event);
        this.#advance();
        return true;
      case "tool_delta": {
        const block = this.#find(event.key);
        if (block === undefined) return true;
        block.progress?.feed(event.text);
        this.#step(block, { type: "delta", text: event.text });
        if (this.#blocks.length > 1) this.#advance();
        return true;
      }
      case "tool_end": {
        const block = this.#find(event.key);
        if (block !== undefined) block.hasEnded = true;
        this.#advance();
        return true;
      }
      case "start":
      case "usage":
      case "finish":
      case "end":
      case "error":
        return false;
    }
  }

  /** The stream is over: everything that waits is delivered and closed. */
  finish(): void {
    for (const block of this.#blocks) block.hasEnded = true;
    this.#advance();
  }

  #current(kind: BlockKind): Block {
    const tail = this.#blocks.at(-1);
    if (tail !== undefined && tail.kind === kind && !tail.hasEnded) return tail;
    this.#endTail();
    const block = this.#push(kind, null);
    this.#advance();
    return block;
  }

  #push(kind: BlockKind, tool: ToolStart | null, search: SearchCall | null = null): Block {
    const progress = tool === null || tool.isCustom ? null : new JsonProgress();
    const block: Block = { kind, tool, search, progress, waiting: [], isOpen: false, hasEnded: false };
    this.#blocks.push(block);
    return block;
  }

  #endTail(): void {
    const tail = this.#blocks.at(-1);
    if (tail !== undefined && tail.kind !== "tool") tail.hasEnded = true;
  }

  #find(key: number): Block | undefined {
    return this.#blocks.find((block) => block.tool?.key === key);
  }

  #step(block: Block, step: Step): void {
    if (block.isOpen) {
      this.#deliver(step);
      return;
    }
    block.waiting.push(step);
    if (step.type === "delta") this.waitedLength += step.text.length;
  }

  #deliver(step: Step): void {
    if (step.type === "delta") this.#sink.delta(step.text);
    else if (step.type === "citation") this.#sink.citation(step.citation);
    else this.#sink.signature(step.signature);
  }

  #advance(): void {
    for (let head = this.#blocks[0]; head !== undefined; head = this.#blocks[0]) {
      if (head.search !== null) {
        this.#sink.search(head.search);
        this.#blocks.shift();
        continue;
      }
      if (!head.isOpen) {
        this.#sink.open(head.kind, head.tool);
        head.isOpen = true;
        for (const step of head.waiting.splice(0)) this.#deliver(step);
      }
      const isDone = head.hasEnded || (this.#blocks.length > 1 && head.progress?.isComplete === true);
      if (!isDone) return;
      this.#sink.close();
      this.#blocks.shift();
    }
  }
}
