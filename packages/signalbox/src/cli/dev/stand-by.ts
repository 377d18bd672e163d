/**
 * What `signalbox dev` and the process of the next version say to each other. A version that is loaded waits, while its predecessor still serves:
 *
 *   version → dev   { loaded: true }    configuration and modules are valid
 *   dev → version   { go: true }        the predecessor has ended; the data folder and the port are free
 *   version → dev   { serving: url }
 *
 * See docs/decisions/0535.
 */
import { once } from "node:events";

/** Set for a version that has a predecessor. */
export const STANDBY_VARIABLE = "SIGNALBOX_STANDBY";

export function standsBy(environment: Readonly<Record<string, string | undefined>>): boolean {
  return environment[STANDBY_VARIABLE] !== undefined && process.send !== undefined;
}

/** Reports that this version is loaded. Resolves when it may go on; ends the process if `dev` ends before. */
export async function standBy(): Promise<void> {
  const exit = () => process.exit(1);
  process.once("disconnect", exit);
  // Nothing else keeps the process.
  process.channel?.ref();
  const go = once(process, "message");
  process.send?.({ loaded: true });
  await go;
  process.channel?.unref();
  process.off("disconnect", exit);
}
