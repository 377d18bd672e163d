/** What `signalbox serve` loads. One module, so that `bin/reexec.js` can compile all of it in advance. */
export { SignalboxError } from "@signalbox/protocol";
export { isBusy, isFullDisk } from "../engines/sqlite-file/index.ts";
export { currentTurn } from "../engines/turn-runtime/index.ts";
export { startService } from "../service.ts";
export { commandLine } from "../service/first-commands.ts";
export { watchBlocking } from "../telemetry/blocked-process.ts";
export { createLogger } from "../telemetry/logger.ts";
export { UncaughtErrors } from "../telemetry/uncaught-errors.ts";
