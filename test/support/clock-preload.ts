/** Sets the clock of this process ahead by SIGNALBOX_TEST_CLOCK_MS (behind, if negative), as a machine with a wrong clock has it. */
const offset = Number(process.env["SIGNALBOX_TEST_CLOCK_MS"] ?? 0);

if (offset !== 0) {
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
