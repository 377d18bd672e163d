/** `npm test`: makes sure that what the tests need is here, then runs them all. Arguments are passed on to the test runner. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { CHROMIUM_IS_MISSING, findChromium } from "../test/browser/support/chromium-path.ts";

const args = process.argv.slice(2);
const filters = args.filter((arg) => !arg.startsWith("-"));
/** Whoever runs one unit test need not wait for a browser to be installed. */
const needsBrowser = filters.length === 0 || filters.some((filter) => /browser|examples/.test(filter));

// Tests of the dashboard must not pass or fail on yesterday's build.
spawnSync(process.execPath, [join(import.meta.dirname, "build-dashboard.ts"), "--if-stale"], {
  stdio: "inherit",
});

if (needsBrowser && findChromium() === null && !installChromium()) {
  console.error(CHROMIUM_IS_MISSING);
  process.exitCode = 1;
} else {
  process.exitCode = spawnSync("vitest", ["run", ...args], { stdio: "inherit" }).status ?? 1;
}

/** Only root on a Debian-like machine can; anyone else is told what to do. */
function installChromium(): boolean {
  if (process.env["CHROMIUM_PATH"] !== undefined || process.getuid?.() !== 0) return false;
  console.error("Chromium is missing; installing it with apt-get …");
  return aptGet("update") && aptGet("install", "-y", "chromium") && findChromium() !== null;
}

function aptGet(...command: string[]): boolean {
  // Another installation may hold the package lock for a while.
  const { status } = spawnSync("apt-get", ["-qq", "-o", "DPkg::Lock::Timeout=300", ...command], {
    stdio: ["ignore", "inherit", "inherit"],
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
  });
  return status === 0;
}
