import { existsSync } from "node:fs";

export function findSystemdAnalyze(): string | null {
  const path = process.env["SYSTEMD_ANALYZE_PATH"] ?? "/usr/bin/systemd-analyze";
  return existsSync(path) ? path : null;
}

export const SYSTEMD_IS_MISSING =
  "systemd-analyze is missing: install it (Debian: apt-get install systemd) or set SYSTEMD_ANALYZE_PATH";
