/**
 * Batches of spans: the open one of each list of receivers, those that wait for the worker, and those on their way. README.md states what it promises.
 *
 *   add ─► open batch ──5 s or full──► waiting ──► worker ──► receiver
 */
import { Worker } from "node:worker_threads";
import type {
  SenderBatch,
  SenderFrame,
  SenderMessage,
  SenderReceiver,
  SenderReport,
} from "./sender-messages.ts";
import type { Attributes, Span } from "./span.ts";
import { attributesText } from "./metric-text.ts";
import { KnownTexts, SpanBatch } from "./span-batch.ts";

/** Where batches go. */
export interface OtlpReceiver extends SenderReceiver {}

export interface OtlpOptions {
  readonly resource: Attributes;
  readonly scope: { readonly name: string; readonly version: string };
  readonly maxQueuedSpans: number;
  readonly maxBatchSpans: number;
  readonly delayMs: number;
  /** A batch was lost. */
  readonly onFailure: (receiver: OtlpReceiver, reason: string) => void;
}

export interface OtlpCounts {
  readonly sent: number;
  readonly dropped: number;
}

/** Batches that the worker has not finished; further ones wait. About 25 MB. */
const MAX_PENDING_BATCHES = 64;
/** Of one receiver. Its further spans are dropped: one that does not answer must not keep those of the others. */
const MAX_PENDING_OF_RECEIVER = 8;
const SCHEMA_URL = "https://opentelemetry.io/schemas/1.38.0";

interface Waiting {
  readonly receivers: readonly OtlpReceiver[];
  readonly batch: SpanBatch;
}

type SenderContent =
  | Pick<Extract<SenderBatch, { kind: "spans" }>, "kind" | "numbers" | "texts">
  | Pick<Extract<SenderBatch, { kind: "metrics" }>, "kind" | "json">;

interface Pending {
  readonly receiver: OtlpReceiver;
  readonly spans: number;
}

export class OtlpExporter {
  readonly #options: OtlpOptions;
  readonly #frame: SenderFrame;
  readonly #known = new KnownTexts();
  readonly #open = new Map<readonly OtlpReceiver[], SpanBatch>();
  /** Of the open batches together: what has been added, of which each has one or more spans. */
  #openAdditions = 0;
  readonly #waiting: Waiting[] = [];
  /** Of the open and the waiting batches. */
  #queued = 0;
  #timer: NodeJS.Timeout | undefined;
  #worker: Worker | null = null;
  /** Of the known texts, those that the current thread has been sent. */
  #sentTexts = 0;
  readonly #pending = new Map<number, Pending>();
  #nextId = 1;
  #sent = 0;
  #dropped = 0;
  #isClosed = false;
  #onIdle: (() => void) | null = null;

  constructor(options: OtlpOptions) {
    this.#options = options;
    this.#frame = {
      resource: `{"attributes":[${attributesText(options.resource)}]}`,
      scope: JSON.stringify(options.scope),
      schemaUrl: SCHEMA_URL,
    };
  }

  get counts(): OtlpCounts {
    return { sent: this.#sent, dropped: this.#dropped };
  }

  /** `toSpans` is called at once, or never when the queue is full. */
  add(receivers: readonly OtlpReceiver[], toSpans: () => readonly Span[]): void {
    const { maxQueuedSpans, maxBatchSpans, delayMs } = this.#options;
    if (this.#isClosed || this.#queued >= maxQueuedSpans) {
      this.#dropped += 1;
      return;
    }
    let batch = this.#open.get(receivers);
    if (batch === undefined) this.#open.set(receivers, (batch = new SpanBatch(this.#known)));
    for (const span of toSpans()) batch.add(span);
    batch.additions += 1;
    this.#openAdditions += 1;
    this.#queued += 1;
    if (this.#openAdditions >= maxBatchSpans) this.#write();
    else this.#timer ??= setTimeout(() => this.#write(), delayMs);
  }

  /** `metrics` are elements of OTLP/JSON. */
  sendMetrics(receiver: OtlpReceiver, metrics: string): void {
    if (this.#isBehind(receiver)) return;
    this.#send(receiver, { kind: "metrics", json: metrics }, 0);
  }

  /** Sends what is queued, within `graceMs`. */
  async close(graceMs: number): Promise<void> {
    this.#write();
    this.#isClosed = true;
    if (this.#pending.size > 0 || this.#waiting.length > 0) {
      let timer: NodeJS.Timeout | undefined;
      await Promise.race([
        new Promise<void>((resolve) => (this.#onIdle = resolve)),
        new Promise<void>((resolve) => (timer = setTimeout(resolve, graceMs))),
      ]);
      clearTimeout(timer);
    }
    clearTimeout(this.#timer);
    for (const { batch } of this.#waiting.splice(0)) this.#dropped += batch.spans;
    await this.#worker?.terminate();
  }

  #write(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const [receivers, batch] of this.#open) this.#waiting.push({ receivers, batch });
    this.#open.clear();
    this.#openAdditions = 0;
    this.#sendWaiting();
  }

  /** While the worker is behind, batches wait, and beyond the end of the queue spans are dropped. */
  #sendWaiting(): void {
    while (this.#pending.size < MAX_PENDING_BATCHES) {
      const waiting = this.#waiting.shift();
      if (waiting === undefined) return;
      const { receivers, batch } = waiting;
      this.#queued -= batch.additions;
      for (const receiver of receivers) {
        const { spans, texts } = batch;
        if (this.#isBehind(receiver)) this.#drop(receiver, spans, "the receiver is too slow");
        else this.#send(receiver, { kind: "spans", numbers: batch.copyNumbers(), texts }, spans);
      }
    }
  }

  #send(receiver: OtlpReceiver, content: SenderContent, spans: number): void {
    const id = this.#nextId++;
    this.#pending.set(id, { receiver, spans });
    const worker = this.#startWorker();
    const texts = this.#known.from(this.#sentTexts);
    if (texts.length > 0) worker.postMessage({ kind: "texts", texts } satisfies SenderMessage);
    this.#sentTexts += texts.length;
    const moved = content.kind === "spans" ? [content.numbers.buffer] : [];
    worker.postMessage({ id, receiver, frame: this.#frame, ...content } satisfies SenderMessage, moved);
  }

  #isBehind({ url }: OtlpReceiver): boolean {
    let batches = 0;
    for (const { receiver } of this.#pending.values()) if (receiver.url === url) batches += 1;
    return batches >= MAX_PENDING_OF_RECEIVER;
  }

  #drop(receiver: OtlpReceiver, spans: number, reason: string): void {
    this.#dropped += spans;
    this.#options.onFailure(receiver, reason);
  }

  #startWorker(): Worker {
    if (this.#worker !== null) return this.#worker;
    const worker = new Worker(new URL("./otlp-sender.worker.ts", import.meta.url));
    worker.unref();
    this.#sentTexts = 0;
    worker.on("message", ({ id, failure }: SenderReport) => this.#finished(id, failure));
    // What it had not finished is lost; the next batch starts another one.
    const lost = (reason: string) => {
      if (this.#worker !== worker) return;
      this.#worker = null;
      // A copy: when one is finished, the next of those that wait goes to another thread.
      const lostIds = Array.from(this.#pending.keys());
      for (const id of lostIds) this.#finished(id, reason);
    };
    worker.on("error", (error) => lost(error.message));
    worker.on("exit", () => lost("the sender's thread has ended"));
    this.#worker = worker;
    return worker;
  }

  #finished(id: number, failure: string | null): void {
    const pending = this.#pending.get(id);
    if (pending === undefined) return;
    this.#pending.delete(id);
    if (failure === null) this.#sent += pending.spans;
    else this.#drop(pending.receiver, pending.spans, failure);
    this.#sendWaiting();
    if (this.#pending.size === 0) this.#onIdle?.();
  }
}
