/**
 * The queue of spans and the batches on their way. README.md states what it promises.
 *
 *   add ─► queue ──5 s or a full batch──► numbers and texts, in slices ──► worker ──► receiver
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

/** A slice takes about 0.1 ms. */
const SLICE_SPANS = 64;
/** Batches that the worker has not finished; further spans wait in the queue. About 25 MB. */
const MAX_PENDING_BATCHES = 64;
/** Of one receiver. Its further spans are dropped: one that does not answer must not keep those of the others. */
const MAX_PENDING_OF_RECEIVER = 8;
const SCHEMA_URL = "https://opentelemetry.io/schemas/1.38.0";

interface Waiting {
  readonly receivers: readonly OtlpReceiver[];
  readonly toSpans: () => readonly Span[];
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
  #queue: Waiting[] = [];
  #timer: NodeJS.Timeout | undefined;
  #isWriting = false;
  #worker: Worker | null = null;
  /** Of the current thread. */
  #known = new KnownTexts();
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

  /** `toSpans` is called later, or never when the queue is full. */
  add(receivers: readonly OtlpReceiver[], toSpans: () => readonly Span[]): void {
    if (this.#isClosed || this.#queue.length >= this.#options.maxQueuedSpans) {
      this.#dropped += 1;
      return;
    }
    this.#queue.push({ receivers, toSpans });
    if (this.#queue.length >= this.#options.maxBatchSpans) this.#write();
    else this.#timer ??= setTimeout(() => this.#write(), this.#options.delayMs);
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
    if (this.#pending.size > 0 || this.#isWriting) {
      let timer: NodeJS.Timeout | undefined;
      await Promise.race([
        new Promise<void>((resolve) => (this.#onIdle = resolve)),
        new Promise<void>((resolve) => (timer = setTimeout(resolve, graceMs))),
      ]);
      clearTimeout(timer);
    }
    clearTimeout(this.#timer);
    await this.#worker?.terminate();
  }

  #write(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#isWriting || this.#queue.length === 0) return;
    // The worker is behind: spans wait in the queue, and beyond its end they are dropped.
    if (this.#pending.size >= MAX_PENDING_BATCHES) {
      if (!this.#isClosed) this.#timer = setTimeout(() => this.#write(), this.#options.delayMs);
      return;
    }
    this.#isWriting = true;
    // The thread first: a batch refers to texts that its thread knows.
    this.#startWorker();
    const known = this.#known;
    const queued = this.#queue.splice(0, this.#options.maxBatchSpans);
    const batches = new Map<readonly OtlpReceiver[], SpanBatch>();
    const slice = (from: number) => {
      for (let i = from; i < Math.min(from + SLICE_SPANS, queued.length); i++) {
        const waiting = queued[i];
        if (waiting === undefined) continue;
        let batch = batches.get(waiting.receivers);
        if (batch === undefined) batches.set(waiting.receivers, (batch = new SpanBatch(known)));
        for (const span of waiting.toSpans()) batch.add(span);
      }
      if (from + SLICE_SPANS < queued.length) setImmediate(slice, from + SLICE_SPANS);
      else this.#written(batches, known);
    };
    slice(0);
  }

  #written(batches: ReadonlyMap<readonly OtlpReceiver[], SpanBatch>, known: KnownTexts): void {
    this.#isWriting = false;
    for (const [receivers, batch] of batches) {
      const { texts, spans } = batch;
      for (const receiver of receivers) {
        if (this.#isBehind(receiver)) this.#drop(receiver, spans, "the receiver is too slow");
        // Another thread has been started meanwhile, and does not know the texts.
        else if (known !== this.#known) this.#dropped += spans;
        else this.#send(receiver, { kind: "spans", numbers: batch.copyNumbers(), texts }, spans);
      }
    }
    if (this.#queue.length >= this.#options.maxBatchSpans || this.#isClosed) this.#write();
    else if (this.#queue.length > 0) this.#timer ??= setTimeout(() => this.#write(), this.#options.delayMs);
  }

  #send(receiver: OtlpReceiver, content: SenderContent, spans: number): void {
    const id = this.#nextId++;
    this.#pending.set(id, { receiver, spans });
    const worker = this.#startWorker();
    const texts = this.#known.takeAdded();
    if (texts.length > 0) worker.postMessage({ kind: "texts", texts } satisfies SenderMessage);
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
    this.#known = new KnownTexts();
    worker.on("message", ({ id, failure }: SenderReport) => this.#finished(id, failure));
    // What it had not finished is lost; the next batch starts another one.
    const lost = (reason: string) => {
      if (this.#worker !== worker) return;
      this.#worker = null;
      for (const id of this.#pending.keys()) this.#finished(id, reason);
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
    if (this.#pending.size === 0 && !this.#isWriting && this.#queue.length === 0) this.#onIdle?.();
  }
}
