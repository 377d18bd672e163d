/**
 * Runs an operator's query in a process of its own, on a copy of the database: it can neither write nor hold up anything, and when it
 * takes too long it is killed. (A thread would not do: nothing ends a thread that is inside SQLite.)
 */
import { fork } from "node:child_process";
import { type QueryLimits, type QueryResult, SqlError } from "../../ports/instance-store.ts";

export interface QueryOrder {
  readonly snapshot: Uint8Array;
  readonly text: string;
  readonly maxRows: number;
}

export type QueryAnswer = QueryResult | { readonly error: string };

export async function queryInProcess(
  snapshot: Uint8Array,
  text: string,
  { maxRows, timeoutMs }: QueryLimits,
): Promise<QueryResult> {
  const extension = import.meta.url.endsWith(".ts") ? ".ts" : ".js";
  const child = fork(new URL(`./read-only-query.worker${extension}`, import.meta.url), {
    serialization: "advanced",
    stdio: ["ignore", "ignore", "ignore", "ipc"],
    // None of our flags and none of our secrets.
    execArgv: [],
    env: {},
  });
  let timer: NodeJS.Timeout | undefined;
  try {
    const answer = await new Promise<QueryAnswer>((resolve, reject) => {
      child.once("message", (message) => resolve(message as QueryAnswer));
      child.once("error", reject);
      child.once("exit", () => resolve({ error: "the query ended without an answer" }));
      timer = setTimeout(() => resolve({ error: `the query took longer than ${timeoutMs} ms` }), timeoutMs);
      const order: QueryOrder = { snapshot, text, maxRows };
      child.send(order);
    });
    if ("error" in answer) throw new SqlError(answer.error, text);
    return answer;
  } finally {
    clearTimeout(timer);
    child.kill("SIGKILL");
  }
}
