/** Where the browser of the tests is. A missing browser is a failure with a remedy, never a reason to skip. */
import { existsSync } from "node:fs";

const DEBIAN_CHROMIUM = "/usr/bin/chromium";

/** `CHROMIUM_PATH` wins, so that a machine with another browser (macOS, a CI image) can name it. */
export function findChromium(environment: NodeJS.ProcessEnv = process.env): string | null {
  const path = environment["CHROMIUM_PATH"] ?? DEBIAN_CHROMIUM;
  return existsSync(path) ? path : null;
}

export const CHROMIUM_IS_MISSING =
  "Browser tests need Chromium: install it (on Debian and Ubuntu: apt-get install chromium) or set CHROMIUM_PATH to its executable.";
