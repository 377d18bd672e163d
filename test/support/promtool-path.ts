/** Finds Prometheus' tool for the tests. If it is missing, the tests fail with instructions; they are never skipped. */
import { existsSync } from "node:fs";

const DEBIAN_PROMTOOL = "/usr/bin/promtool";

/** `PROMTOOL_PATH` takes precedence. */
export function findPromtool(environment: NodeJS.ProcessEnv = process.env): string | null {
  const path = environment["PROMTOOL_PATH"] ?? DEBIAN_PROMTOOL;
  return existsSync(path) ? path : null;
}

export const PROMTOOL_IS_MISSING =
  "Tests of the Prometheus rules require promtool. Install it (Debian and Ubuntu: apt-get install prometheus) or set PROMTOOL_PATH to its executable.";
