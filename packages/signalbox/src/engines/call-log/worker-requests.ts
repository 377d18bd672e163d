/** Questions to a worker thread, and their answers. */
import { setFlagsFromString } from "node:v8";
import { type MessagePort, Worker } from "node:worker_threads";
import { SignalboxError } from "@signalbox/protocol";
import { explainFailure } from "../sqlite-file/index.ts";
import type { Answer, Question } from "./worker-messages.ts";

/** What these threads allocate is short-lived: room for more would only make the process larger before it is cleared. */
const YOUNG_GENERATION_MB = 2;
// The size that the server was started with is meant for the main thread, which has it by now; as long as it is set, threads get it too.
setFlagsFromString("--max-semi-space-size=0");

/**
 * A worker beside the given module; source files run as TypeScript, published ones as JavaScript. It ends by the error that it reports, and whoever
 * started it hears of the end; they may listen for the error, too.
 */
export function startWorker(name: string, moduleUrl: string, workerData: unknown): Worker {
  const extension = moduleUrl.endsWith(".ts") ? ".ts" : ".js";
  const worker = new Worker(new URL(`./${name}.worker${extension}`, moduleUrl), {
    name,
    workerData,
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_GENERATION_MB },
  });
  worker.on("error", () => undefined);
  return worker;
}

interface Waiting {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** The asking side. */
export class Questions {
  readonly #post: (question: Question) => void;
  readonly #waiting = new Map<number, Waiting>();
  #nextId = 1;

  constructor(post: (question: Question) => void) {
    this.#post = post;
  }

  ask<T>(method: string, ...args: readonly unknown[]): Promise<T> {
    const id = this.#nextId++;
    return new Promise<unknown>((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#post({ kind: "ask", id, method, args });
    }) as Promise<T>;
  }

  take(answer: Answer): void {
    const waiting = this.#waiting.get(answer.id);
    this.#waiting.delete(answer.id);
    if (answer.kind === "answer") waiting?.resolve(answer.value);
    else if (answer.isUnavailable)
      waiting?.reject(new SignalboxError("storage_unavailable", { message: answer.message }));
    else waiting?.reject(new Error(answer.message));
  }

  /** No answer will come any more. */
  fail(error: Error): void {
    for (const waiting of this.#waiting.values()) waiting.reject(error);
    this.#waiting.clear();
  }
}

/** The answering side: runs a handler and sends what it returns or throws. */
export async function answerQuestion(
  port: MessagePort,
  { id, method, args }: Question,
  handlers: Readonly<Record<string, (...args: never[]) => unknown>>,
): Promise<void> {
  let answer: Answer;
  try {
    const handler = handlers[method];
    if (handler === undefined) throw new Error(`no such question: ${method}`);
    answer = { kind: "answer", id, value: await handler(...(args as never[])) };
  } catch (error) {
    const explained = explainFailure(error);
    const message = explained instanceof Error ? explained.message : String(explained);
    answer = { kind: "error", id, message, isUnavailable: explained !== error };
  }
  port.postMessage(answer);
}
