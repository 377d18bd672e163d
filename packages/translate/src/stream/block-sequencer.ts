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
  next: Block | null;
}

/** What a block takes beside its texts, in characters. */
const BLOCK_LENGTH = 200;

export class BlockSequencer {
  readonly #sink: BlockSink;
  /** The block that is open, or opens next; the others follow in their order. A stream may begin more calls than could be searched for each delta. */
  #head: Block | null = null;
  #tail: Block | null = null;
  /** Calls that have not been closed, by key. */
  readonly #calls = new Map<number, Block>();
  /** Characters that have had to wait, with those of the blocks that did. */
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
        const block = this.#calls.get(event.key);
        if (block === undefined) return true;
        block.progress?.feed(event.text);
        this.#step(block, { type: "delta", text: event.text });
        if (this.#head !== this.#tail) this.#advance();
        return true;
      }
      case "tool_end": {
        const block = this.#calls.get(event.key);
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
    for (let block = this.#head; block !== null; block = block.next) block.hasEnded = true;
    this.#advance();
  }

  #current(kind: BlockKind): Block {
    const tail = this.#tail;
    if (tail !== null && tail.kind === kind && !tail.hasEnded) return tail;
    this.#endTail();
    const block = this.#push(kind, null);
    this.#advance();
    return block;
  }

  #push(kind: BlockKind, tool: ToolStart | null, search: SearchCall | null = null): Block {
    const progress = tool === null || tool.isCustom ? null : new JsonProgress();
    const block: Block = {
      kind,
      tool,
      search,
      progress,
      waiting: [],
      isOpen: false,
      hasEnded: false,
      next: null,
    };
    if (this.#tail === null) this.#head = block;
    else {
      this.#tail.next = block;
      this.waitedLength += BLOCK_LENGTH;
    }
    this.#tail = block;
    if (tool !== null && !this.#calls.has(tool.key)) this.#calls.set(tool.key, block);
    return block;
  }

  #endTail(): void {
    if (this.#tail !== null && this.#tail.kind !== "tool") this.#tail.hasEnded = true;
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
    for (let head = this.#head; head !== null; head = this.#head) {
      if (head.search !== null) {
        this.#sink.search(head.search);
        this.#remove(head);
        continue;
      }
      if (!head.isOpen) {
        this.#sink.open(head.kind, head.tool);
        head.isOpen = true;
        for (const step of head.waiting.splice(0)) this.#deliver(step);
      }
      const isDone = head.hasEnded || (head.next !== null && head.progress?.isComplete === true);
      if (!isDone) return;
      this.#sink.close();
      this.#remove(head);
    }
  }

  #remove(head: Block): void {
    this.#head = head.next;
    if (head.next === null) this.#tail = null;
    if (head.tool !== null && this.#calls.get(head.tool.key) === head) this.#calls.delete(head.tool.key);
  }
}
