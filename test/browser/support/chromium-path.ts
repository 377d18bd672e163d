/** Finds the browser for the tests. If it is missing, the tests fail with instructions; they are never skipped. */
import { existsSync } from "node:fs";

/** Debian's packages. The headless shell is the same browser without its windows, and takes a third less CPU time. */
const PATHS = ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium"];

/** `CHROMIUM_PATH` takes precedence, for machines with another browser (macOS, a CI image). */
export function findChromium(environment: NodeJS.ProcessEnv = process.env): string | null {
  const given = environment["CHROMIUM_PATH"];
  return (given === undefined ? PATHS : [given]).find((path) => existsSync(path)) ?? null;
}

export const CHROMIUM_IS_MISSING =
  "Browser tests require Chromium. Install it (Debian and Ubuntu: apt-get install chromium) or set CHROMIUM_PATH to its executable.";
