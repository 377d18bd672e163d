/** The reader's thread. */
import { parentPort, workerData } from "node:worker_threads";
import type { BodySide, GatewayRef } from "./call-log.ts";
import { CallReader } from "./call-reader.ts";
import type { CallScan } from "./call-scan.ts";
import type { CallPageRequest, CallSelection, Order } from "./selection.ts";
import type { UsageQuery } from "./usage.ts";
import type { UsageByQuery } from "./usage-by.ts";
import type { ReaderOptions, WorkerRequest } from "./worker-messages.ts";
import { answerRequest } from "./worker-requests.ts";

if (parentPort === null) throw new Error("this module runs in a worker thread");
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
    // Copied: posting a view would send the whole buffer behind it.
    return body === null ? null : { ...body, bytes: new Uint8Array(body.bytes.subarray(0, maxBytes)) };
  },
  summarise: (query: UsageQuery) => reader.summarise(query),
  summariseTotals: (query: UsageByQuery) => reader.summariseTotals(query),
  summariseBy: (query: UsageByQuery, cursor: string | null) => reader.summariseBy(query, cursor),
  scan: (scan: CallScan) => reader.scan(scan),
  storedAfter: (position: string | null, limit: number) => reader.storedAfter(position, limit),
  neighbours: (gateway: GatewayRef, id: string) => reader.neighbours(gateway, id),
  close: () => reader.close(),
};

port.on("message", (request: WorkerRequest) => void answerRequest(port, request, handlers));
