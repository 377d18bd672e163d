/** Loads the command line's code, without running it, and waits until the parent says "go". Worker threads of the server run as usual. */
import { isMainThread } from "node:worker_threads";

if (isMainThread) {
  const word = new Promise<void>((resolve) => process.once("message", () => resolve()));
  // A test that ends without a word must not leave a process behind.
  const leave = () => process.exit(1);
  process.once("disconnect", leave);
  await import("../../packages/signalbox/src/cli/main.ts");
  await word;
  process.off("disconnect", leave).disconnect();
}
