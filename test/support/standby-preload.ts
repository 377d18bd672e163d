/** Loads the command line's code, without running it, and waits until the parent says "go". Worker threads of the server run as usual. */
import { isMainThread } from "node:worker_threads";

if (isMainThread) {
  const word = new Promise<void>((resolve) => process.once("message", () => resolve()));
  await import("../../packages/signalbox/src/cli/main.ts");
  await word;
  process.disconnect();
}
