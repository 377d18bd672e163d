/** The reader's thread. */
import { parentPort, workerData } from "node:worker_threads";
import type { BodySide, CallPageRequest, CallSelection, GatewayRef, UsageQuery } from "./call-log.ts";
import { CallReader, type Order } from "./call-reader.ts";
import type { Question, ReaderOptions } from "./worker-messages.ts";
import { answerQuestion } from "./worker-requests.ts";

if (parentPort === null) throw new Error("runs as a worker only");
const port = parentPort;
const reader = new CallReader((workerData as ReaderOptions).folder);

const handlers = {
  list: (gateway: GatewayRef, page: CallPageRequest) => reader.list(gateway, page),
  select: (gateway: GatewayRef, selection: CallSelection, order: Order, limit: number) =>
    reader.select(gateway, selection, order, limit),
  ranges: (gateway: GatewayRef, selection: CallSelection) => reader.ranges(gateway, selection),
  get: (gateway: GatewayRef, id: string) => reader.get(gateway, id),
  body(gateway: GatewayRef, id: string, side: BodySide, maxBytes: number) {
    const body = reader.body(gateway, id, side);
    // Copied: of a view the whole memory behind it would be sent.
    return body === null ? null : { ...body, bytes: new Uint8Array(body.bytes.subarray(0, maxBytes)) };
  },
  summarise: (query: UsageQuery) => reader.summarise(query),
  close: () => reader.close(),
};

port.on("message", (message: Question) => void answerQuestion(port, message, handlers));
