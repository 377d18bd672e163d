/**
 * Runs a query on a copy of a database in its own process: the query cannot write and cannot block the server, and the process is killed at
 * its limits of time and memory. (A thread inside SQLite cannot be ended.)
 * See README.md.
 */
import { fork } from "node:child_process";
import { afterAwakeTime } from "../../core/awake-time.ts";
import { type QueryLimits, type QueryResult, SqlError } from "./instance-store.ts";

export interface QueryRequest {
  readonly snapshot: Uint8Array;
  readonly text: string;
  readonly limits: QueryLimits;
}

/** Message of the process when it starts the statement; then `timeoutMs` begins. */
export const STARTED = "started";
/** Time limit for the start of the process; generous, for a busy machine. */
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
    // The process gets none of the server's flags and secrets.
    execArgv: [],
    env: {},
  });
  let cancel = () => {};
  try {
    const answer = await new Promise<QueryAnswer>((resolve, reject) => {
      const expire = () => resolve({ error: `the query took longer than ${timeoutMs} ms` });
      cancel = afterAwakeTime(START_TIMEOUT_MS, expire);
      child.on("message", (message) => {
        if (message !== STARTED) resolve(message as QueryAnswer);
        else {
          cancel();
          cancel = afterAwakeTime(timeoutMs, expire);
        }
      });
      // Stays after the answer: a failed kill must not end the server.
      child.on("error", reject);
      child.once("exit", (_code, signal) => {
        const cause =
          signal === "SIGKILL" ? `the query needed more than ${maxMemoryBytes} bytes of memory` : undefined;
        resolve({ error: cause ?? "the query ended without an answer" });
      });
      const request: QueryRequest = { snapshot, text, limits };
      child.send(request);
    });
    if ("error" in answer) throw new SqlError(answer.error, text);
    return answer;
  } finally {
    cancel();
    child.kill("SIGKILL");
  }
}
