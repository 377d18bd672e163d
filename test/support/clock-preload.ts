/**
 * Sets the clock of this process ahead by SIGNALBOX_TEST_CLOCK_MS (behind, if negative), as a machine with a wrong clock has it. With
 * SIGNALBOX_TEST_CLOCK_FILE, SIGUSR2 sets it to what the file says then. Timers and the monotonic clock do not notice.
 */
import { readFileSync } from "node:fs";

const file = process.env["SIGNALBOX_TEST_CLOCK_FILE"];
let offset = Number(process.env["SIGNALBOX_TEST_CLOCK_MS"] ?? 0);
if (file !== undefined) process.on("SIGUSR2", () => (offset = Number(readFileSync(file, "utf8"))));

if (offset !== 0 || file !== undefined) {
  const RealDate = Date;
  globalThis.Date = class extends RealDate {
    constructor(...args: unknown[]) {
      super(...((args.length === 0 ? [RealDate.now() + offset] : args) as [number]));
    }

    static override now(): number {
      return RealDate.now() + offset;
    }
  } as DateConstructor;
}
