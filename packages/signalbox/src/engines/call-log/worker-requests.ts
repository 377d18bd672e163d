/** Requests to a worker thread and their responses. */
import { setFlagsFromString } from "node:v8";
import { type MessagePort, Worker } from "node:worker_threads";
import { SignalboxError } from "@signalbox/protocol";
import { explainFailure } from "../sqlite-file/index.ts";
import type { WorkerRequest, WorkerResponse } from "./worker-messages.ts";

/** The threads allocate short-lived objects only: a larger young generation would only grow before it is collected. */
const YOUNG_GENERATION_MB = 2;
// A size given on the command line overrides `resourceLimits`. The main thread has taken its size by now, so the flag can be reset.
setFlagsFromString("--max-semi-space-size=0");

/** Starts `<name>.worker` beside the given module: TypeScript in the repository, JavaScript in the published package. */
export function startWorker(name: string, moduleUrl: string, workerData: unknown): Worker {
  const extension = moduleUrl.endsWith(".ts") ? ".ts" : ".js";
  const worker = new Worker(new URL(`./${name}.worker${extension}`, moduleUrl), {
    name,
    workerData,
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_GENERATION_MB },
  });
  // An error ends the thread; without a listener it would also end the process. The owner listens for `exit`.
  worker.on("error", () => undefined);
  return worker;
}

interface PendingRequest {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

export class WorkerRequests {
  readonly #worker: Worker;
  readonly #pending = new Map<number, PendingRequest>();
  #nextId = 1;

  constructor(worker: Worker) {
    this.#worker = worker;
  }

  /** Requests without a response. */
  get pending(): number {
    return this.#pending.size;
  }

  send<T>(method: string, ...args: readonly unknown[]): Promise<T> {
    const id = this.#nextId++;
    return new Promise<unknown>((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      this.#worker.postMessage({ kind: "request", id, method, args } satisfies WorkerRequest);
    }) as Promise<T>;
  }

  receive(response: WorkerResponse): void {
    const pending = this.#pending.get(response.id);
    this.#pending.delete(response.id);
    if (response.kind === "result") pending?.resolve(response.value);
    else if (response.isUnavailable)
      pending?.reject(new SignalboxError("storage_unavailable", { message: response.message }));
    else pending?.reject(new Error(response.message));
  }

  /** Rejects all pending requests: the thread has ended. */
  fail(error: Error): void {
    for (const { reject } of this.#pending.values()) reject(error);
    this.#pending.clear();
  }
}

/** Runs in the worker: calls the handler and posts its result or error. */
export async function answerRequest(
  port: MessagePort,
  { id, method, args }: WorkerRequest,
  handlers: Readonly<Record<string, (...args: never[]) => unknown>>,
): Promise<void> {
  let response: WorkerResponse;
  try {
    const handler = handlers[method];
    if (handler === undefined) throw new Error(`unknown method: ${method}`);
    response = { kind: "result", id, value: await handler(...(args as never[])) };
  } catch (error) {
    const explained = explainFailure(error);
    const message = explained instanceof Error ? explained.message : String(explained);
    response = { kind: "error", id, message, isUnavailable: explained !== error };
  }
  port.postMessage(response);
}
