/** The output of this process counts as a terminal. */
import { isMainThread } from "node:worker_threads";

if (isMainThread) Object.defineProperty(process.stdout, "isTTY", { value: true });
