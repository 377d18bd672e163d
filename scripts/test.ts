/** `npm test`: builds the dashboard and installs Chromium and promtool if necessary, then runs the tests. Arguments are passed to the test runner. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { findPromtool, PROMTOOL_IS_MISSING } from "../test/support/promtool-path.ts";
import { CHROMIUM_IS_MISSING, findChromium } from "../test/browser/support/chromium-path.ts";

const args = process.argv.slice(2);
const filters = args.filter((arg) => !arg.startsWith("-"));
/** A run of selected tests does not install a browser that it does not need. */
const needsBrowser = filters.length === 0 || filters.some((filter) => /browser|examples/.test(filter));
const needsPromtool = filters.length === 0 || filters.some((filter) => /deploy|prometheus/.test(filter));

// The dashboard tests must run against the current sources.
spawnSync(process.execPath, [join(import.meta.dirname, "build-dashboard.ts"), "--if-stale"], {
  stdio: "inherit",
});

if (needsBrowser && findChromium() === null && !installChromium()) {
  console.error(CHROMIUM_IS_MISSING);
  process.exitCode = 1;
} else if (needsPromtool && findPromtool() === null && !installPromtool()) {
  console.error(PROMTOOL_IS_MISSING);
  process.exitCode = 1;
} else {
  process.exitCode = spawnSync("vitest", ["run", ...args], { stdio: "inherit" }).status ?? 1;
}

/** Works for root on Debian-like systems; otherwise a message says what to install. */
function installChromium(): boolean {
  if (process.env["CHROMIUM_PATH"] !== undefined || process.getuid?.() !== 0) return false;
  console.error("Chromium is missing; installing it with apt-get …");
  return aptGet("update") && aptGet("install", "-y", "chromium") && findChromium() !== null;
}

/** The package contains a daemon, which must not start: `RUNLEVEL=1` says so to Debian's scripts. */
function installPromtool(): boolean {
  if (process.env["PROMTOOL_PATH"] !== undefined || process.getuid?.() !== 0) return false;
  console.error("promtool is missing; installing the package prometheus with apt-get …");
  process.env["RUNLEVEL"] = "1";
  return (
    aptGet("update") &&
    aptGet("install", "-y", "--no-install-recommends", "prometheus") &&
    findPromtool() !== null
  );
}

function aptGet(...command: string[]): boolean {
  // Another apt-get may hold the package lock.
  const { status } = spawnSync("apt-get", ["-qq", "-o", "DPkg::Lock::Timeout=300", ...command], {
    stdio: ["ignore", "inherit", "inherit"],
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
  });
  return status === 0;
}
