/** Finds the browser for the tests. If it is missing, the tests fail with instructions; they are never skipped. */
import { existsSync } from "node:fs";

const DEBIAN_CHROMIUM = "/usr/bin/chromium";

/** `CHROMIUM_PATH` takes precedence, for machines with another browser (macOS, a CI image). */
export function findChromium(environment: NodeJS.ProcessEnv = process.env): string | null {
  const path = environment["CHROMIUM_PATH"] ?? DEBIAN_CHROMIUM;
  return existsSync(path) ? path : null;
}

export const CHROMIUM_IS_MISSING =
  "Browser tests require Chromium. Install it (Debian and Ubuntu: apt-get install chromium) or set CHROMIUM_PATH to its executable.";
