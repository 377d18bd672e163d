/** For processes of tests that count what happens in a day: limits of a day begin again at midnight. */
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const DAY_MS = 86_400_000;
const PRELOAD = pathToFileURL(join(import.meta.dirname, "clock-preload.ts")).href;

/** Variables of a process whose clock begins at noon (UTC). */
export function atNoon(): Record<string, string> {
  const offsetMs = DAY_MS / 2 - (Date.now() % DAY_MS);
  return { NODE_OPTIONS: `--import=${PRELOAD}`, SIGNALBOX_TEST_CLOCK_MS: String(offsetMs) };
}
