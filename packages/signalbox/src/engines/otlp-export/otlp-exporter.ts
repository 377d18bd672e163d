/**
 * The queue of spans and the batches on their way. README.md states what it promises.
 *
 *   add ─► queue ──5 s or a full batch──► text, in slices ──► worker ──► receiver
 */
import { Worker } from "node:worker_threads";
import type { SenderBatch, SenderReceiver, SenderReport } from "./sender-messages.ts";
import type { Attributes, Span } from "./span.ts";
import { attributesText, spanText } from "./span-text.ts";

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

/** A slice takes about 0.2 ms. */
const SLICE_SPANS = 64;
/** Batches that the worker has not finished; further spans wait in the queue. */
const MAX_PENDING_BATCHES = 8;
const SCHEMA_URL = "https://opentelemetry.io/schemas/1.38.0";

interface Waiting {
  readonly receivers: readonly OtlpReceiver[];
  readonly toSpans: () => readonly Span[];
}

interface Pending {
  readonly receiver: OtlpReceiver;
  readonly spans: number;
}

export class OtlpExporter {
  readonly #options: OtlpOptions;
  readonly #resource: string;
  readonly #scope: string;
  #queue: Waiting[] = [];
  #timer: NodeJS.Timeout | undefined;
  #isWriting = false;
  #worker: Worker | null = null;
  readonly #pending = new Map<number, Pending>();
  #nextId = 1;
  #sent = 0;
  #dropped = 0;
  #isClosed = false;
  #onIdle: (() => void) | null = null;

  constructor(options: OtlpOptions) {
    this.#options = options;
    this.#resource = `{"attributes":[${attributesText(options.resource)}]}`;
    this.#scope = JSON.stringify(options.scope);
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
    if (this.#pending.size >= MAX_PENDING_BATCHES) return;
    const json = `{"resourceMetrics":[{"resource":${this.#resource},"scopeMetrics":[{"scope":${this.#scope},"metrics":[${metrics}],"schemaUrl":"${SCHEMA_URL}"}],"schemaUrl":"${SCHEMA_URL}"}]}`;
    this.#send(receiver, "MetricsData", json, 0);
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
    const batch = this.#queue.splice(0, this.#options.maxBatchSpans);
    const texts = new Map<readonly OtlpReceiver[], string[]>();
    const slice = (from: number) => {
      for (const { receivers, toSpans } of batch.slice(from, from + SLICE_SPANS)) {
        let list = texts.get(receivers);
        if (list === undefined) texts.set(receivers, (list = []));
        for (const span of toSpans()) list.push(spanText(span));
      }
      if (from + SLICE_SPANS < batch.length) setImmediate(slice, from + SLICE_SPANS);
      else this.#written(texts);
    };
    slice(0);
  }

  #written(texts: ReadonlyMap<readonly OtlpReceiver[], readonly string[]>): void {
    this.#isWriting = false;
    for (const [receivers, spans] of texts) {
      const json = `{"resourceSpans":[{"resource":${this.#resource},"scopeSpans":[{"scope":${this.#scope},"spans":[${spans.join(",")}],"schemaUrl":"${SCHEMA_URL}"}],"schemaUrl":"${SCHEMA_URL}"}]}`;
      for (const receiver of receivers) this.#send(receiver, "TracesData", json, spans.length);
    }
    if (this.#queue.length >= this.#options.maxBatchSpans || this.#isClosed) this.#write();
    else if (this.#queue.length > 0) this.#timer ??= setTimeout(() => this.#write(), this.#options.delayMs);
  }

  #send(receiver: OtlpReceiver, message: SenderBatch["message"], json: string, spans: number): void {
    const id = this.#nextId++;
    this.#pending.set(id, { receiver, spans });
    this.#startWorker().postMessage({ id, receiver, message, json } satisfies SenderBatch);
  }

  #startWorker(): Worker {
    if (this.#worker !== null) return this.#worker;
    const worker = new Worker(new URL("./otlp-sender.worker.ts", import.meta.url));
    worker.unref();
    worker.on("message", ({ id, failure }: SenderReport) => this.#finished(id, failure));
    // What it had not finished is lost; the next batch starts another one.
    const lost = (reason: string) => {
      if (this.#worker !== worker) return;
      this.#worker = null;
      for (const id of [...this.#pending.keys()]) this.#finished(id, reason);
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
    else {
      this.#dropped += pending.spans;
      this.#options.onFailure(pending.receiver, failure);
    }
    if (this.#pending.size === 0 && !this.#isWriting && this.#queue.length === 0) this.#onIdle?.();
  }
}
