/**
 * Loads the code of the command line without running it, and waits until the parent sends "go". Worker threads of the
 * server start normally.
 */
import { isMainThread } from "node:worker_threads";

if (isMainThread) {
  const go = new Promise<void>((resolve) => process.once("message", () => resolve()));
  // The process must not outlive a test that ends without sending "go".
  const leave = () => process.exit(1);
  process.once("disconnect", leave);
  await import("../../packages/signalbox/src/cli/main.ts");
  // The command line loads the service when `serve` runs.
  await import("../../packages/signalbox/src/cli/serve-modules.ts");
  await go;
  process.off("disconnect", leave).disconnect();
}
