/** The watching thread. It knows nothing of what blocks: the main thread reports that itself. */
import { Session } from "node:inspector";
import { workerData } from "node:worker_threads";
import { CALL, EQUAL_READINGS, IS_DEBUGGED, TICK_MS, TICKS } from "./shared-cells.ts";

const cells = workerData as Int32Array;
let seen = 0;
let equal = 0;

setInterval(() => {
  const ticks = Atomics.load(cells, TICKS);
  equal = ticks === seen ? equal + 1 : 0;
  seen = ticks;
  if (equal === EQUAL_READINGS && Atomics.load(cells, IS_DEBUGGED) === 0) askWhere();
}, TICK_MS);

function askWhere(): void {
  const session = new Session();
  session.connectToMainThread();
  session.post(
    "Runtime.evaluate",
    { expression: `globalThis[Symbol.for("${Symbol.keyFor(CALL)}")]?.()`, silent: true },
    () => session.disconnect(),
  );
}
