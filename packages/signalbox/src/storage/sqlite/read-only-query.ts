/**
 * Runs an operator's query in a thread of its own, on a copy of the database: it can neither write nor hold up anything, and when it takes
 * too long the thread is ended.
 */
import { Worker } from "node:worker_threads";
import { type QueryLimits, type QueryResult, SqlError } from "../ports/instance-store.ts";

export interface QueryOrder {
  readonly snapshot: Uint8Array;
  readonly text: string;
  readonly maxRows: number;
}

export type QueryAnswer = QueryResult | { readonly error: string };

export async function queryInWorker(
  snapshot: Uint8Array,
  text: string,
  { maxRows, timeoutMs }: QueryLimits,
): Promise<QueryResult> {
  const extension = import.meta.url.endsWith(".ts") ? ".ts" : ".js";
  const order: QueryOrder = { snapshot, text, maxRows };
  const worker = new Worker(new URL(`./read-only-query.worker${extension}`, import.meta.url), {
    workerData: order,
    transferList: [snapshot.buffer as ArrayBuffer],
  });
  let timer: NodeJS.Timeout | undefined;
  try {
    const answer = await new Promise<QueryAnswer>((resolve, reject) => {
      worker.once("message", resolve);
      worker.once("error", reject);
      timer = setTimeout(() => resolve({ error: `the query took longer than ${timeoutMs} ms` }), timeoutMs);
    });
    if ("error" in answer) throw new SqlError(answer.error, text);
    return answer;
  } finally {
    clearTimeout(timer);
    await worker.terminate();
  }
}
