/** The sender's thread: makes protobuf of a batch if the receiver wants it, compresses, sends and retries. One batch of a receiver at a time. */
import { lookup } from "node:dns";
import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { setTimeout as sleep } from "node:timers/promises";
import { parentPort } from "node:worker_threads";
import { gzipSync } from "node:zlib";
import { createPublicLookup, isPrivateHost } from "../ip-address/index.ts";
import { readSpans } from "./read-spans.ts";
import type { SenderBatch, SenderMessage, SenderReceiver, SenderReport } from "./sender-messages.ts";
import { EncodedTexts, spansToProtobuf } from "./spans-to-protobuf.ts";
import { toProtobuf } from "./to-protobuf.ts";

if (parentPort === null) throw new Error("this module runs in a worker thread");
const port = parentPort;

const MAX_ATTEMPTS = 5;
const FIRST_DELAY_MS = 500;
const MAX_DELAY_MS = 5000;
/** The statuses that OTLP/HTTP calls retryable. */
const RETRYABLE: ReadonlySet<number> = new Set([429, 502, 503, 504]);

const publicLookup = createPublicLookup(
  (hostname, options, callback) => lookup(hostname, options, callback),
  (hostname) => new Error(`${hostname} has a private address`),
);

/** By address: the batch before. */
const turns = new Map<string, Promise<void>>();

/** By number. */
const known: string[] = [];
const encoded = new EncodedTexts(known);

port.on("message", (batch: SenderMessage) => {
  if (batch.kind === "texts") {
    known.push(...batch.texts);
    return;
  }
  const { url } = batch.receiver;
  const turn = (turns.get(url) ?? Promise.resolve()).then(async () => {
    const failure = await sendWithRetries(batch);
    port.postMessage({ id: batch.id, failure } satisfies SenderReport);
  });
  turns.set(url, turn);
  void turn.then(() => {
    if (turns.get(url) === turn) turns.delete(url);
  });
});

function toBytes(batch: SenderBatch): Buffer {
  const { schemaUrl } = batch.frame;
  const resource = JSON.parse(batch.frame.resource) as object;
  const scope = JSON.parse(batch.frame.scope) as object;
  const isJson = batch.receiver.format === "json";
  if (batch.kind === "metrics") {
    const metrics = JSON.parse(`[${batch.json}]`) as object[];
    const data = {
      resourceMetrics: [{ resource, scopeMetrics: [{ scope, metrics, schemaUrl }], schemaUrl }],
    };
    return isJson ? Buffer.from(JSON.stringify(data)) : toProtobuf("MetricsData", data);
  }
  const { numbers, texts } = batch;
  if (!isJson) return spansToProtobuf(numbers, texts, encoded, { resource, scope, schemaUrl });
  const spans = readSpans(numbers, texts, known);
  const data = { resourceSpans: [{ resource, scopeSpans: [{ scope, spans, schemaUrl }], schemaUrl }] };
  return Buffer.from(JSON.stringify(data));
}

async function sendWithRetries(batch: SenderBatch): Promise<string | null> {
  const { receiver } = batch;
  let body: Buffer;
  try {
    const plain = toBytes(batch);
    body = receiver.isCompressed ? gzipSync(plain) : plain;
  } catch (error) {
    return String(error);
  }
  for (let attempt = 1; ; attempt++) {
    const { failure, isFinal } = await send(receiver, body);
    if (failure === null || isFinal || attempt === MAX_ATTEMPTS) return failure;
    await sleep(Math.min(FIRST_DELAY_MS * 2 ** (attempt - 1), MAX_DELAY_MS) * (0.5 + Math.random() / 2));
  }
}

interface Sent {
  readonly failure: string | null;
  readonly isFinal: boolean;
}

function send(receiver: SenderReceiver, body: Buffer): Promise<Sent> {
  const url = new URL(receiver.url);
  if (!receiver.mayBePrivate && isPrivateHost(url.hostname)) {
    return Promise.resolve({ failure: `${url.hostname} is a private address`, isFinal: true });
  }
  const isTls = url.protocol === "https:";
  const options = {
    method: "POST",
    headers: {
      ...receiver.headers,
      "content-type": receiver.format === "json" ? "application/json" : "application/x-protobuf",
      ...(receiver.isCompressed ? { "content-encoding": "gzip" } : {}),
      "content-length": String(body.length),
    },
    signal: AbortSignal.timeout(receiver.timeoutMs),
    ...(receiver.mayBePrivate ? {} : { lookup: publicLookup }),
  };
  return new Promise((resolve) => {
    const request = isTls ? httpsRequest(url, options) : httpRequest(url, options);
    request.once("response", (response) => {
      const status = response.statusCode ?? 0;
      response.resume();
      response.once("close", () => {
        if (status >= 200 && status < 300) resolve({ failure: null, isFinal: true });
        else resolve({ failure: `status ${status}`, isFinal: !RETRYABLE.has(status) });
      });
    });
    request.once("error", (error) => resolve({ failure: error.message, isFinal: false }));
    request.end(body);
  });
}
