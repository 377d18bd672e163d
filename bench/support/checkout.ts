/** Which version of Signalbox a contender runs: this one, or another checkout of the repository it is compared with. */
import { join } from "node:path";

export const THIS_CHECKOUT = join(import.meta.dirname, "../..");

export function cliOf(checkout: string): string {
  return join(checkout, "packages/signalbox/bin/signalbox.js");
}
