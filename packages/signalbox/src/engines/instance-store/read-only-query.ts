/**
 * Runs an operator's query in a process of its own, on a copy of the database: it can neither write nor hold up anything, and when it
 * takes too long or too much memory it is killed. (A thread would not do: nothing ends a thread that is inside SQLite.)
 */
import { fork } from "node:child_process";
import { type QueryLimits, type QueryResult, SqlError } from "./instance-store.ts";

export interface QueryOrder {
  readonly snapshot: Uint8Array;
  readonly text: string;
  readonly limits: QueryLimits;
}

/** What the process says when it begins with the statement: from then on its time counts. */
export const BEGUN = "begun";
/** For the process itself to start, on a machine that is busy. */
const START_TIMEOUT_MS = 10_000;

export type QueryAnswer = QueryResult | { readonly error: string };

export async function queryInProcess(
  snapshot: Uint8Array,
  text: string,
  limits: QueryLimits,
): Promise<QueryResult> {
  const { timeoutMs, maxMemoryBytes } = limits;
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
      const expire = () => resolve({ error: `the query took longer than ${timeoutMs} ms` });
      timer = setTimeout(expire, START_TIMEOUT_MS);
      child.on("message", (message) => {
        if (message !== BEGUN) resolve(message as QueryAnswer);
        else {
          clearTimeout(timer);
          timer = setTimeout(expire, timeoutMs);
        }
      });
      // Also after the answer: a process that cannot be killed any more must not end ours.
      child.on("error", reject);
      child.once("exit", (_code, signal) => {
        const cause =
          signal === "SIGKILL" ? `the query needed more than ${maxMemoryBytes} bytes of memory` : undefined;
        resolve({ error: cause ?? "the query ended without an answer" });
      });
      const order: QueryOrder = { snapshot, text, limits };
      child.send(order);
    });
    if ("error" in answer) throw new SqlError(answer.error, text);
    return answer;
  } finally {
    clearTimeout(timer);
    child.kill("SIGKILL");
  }
}
