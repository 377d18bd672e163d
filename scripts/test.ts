/**
 * `npm test`: builds the dashboard and installs Chromium, HAProxy, libfaketime and promtool if necessary, then runs the tests. Arguments are passed to
 * the test runner.
 */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { findHaproxy, HAPROXY_IS_MISSING } from "../examples/cluster/haproxy.ts";
import { findPromtool, PROMTOOL_IS_MISSING } from "../test/support/promtool-path.ts";
import { CHROMIUM_IS_MISSING, findChromium } from "../test/browser/support/chromium-path.ts";
import { FAKETIME_IS_MISSING, findFaketime } from "../test/chaos/cluster/fake-clock.ts";

const args = process.argv.slice(2);
const filters = args.filter((arg) => !arg.startsWith("-"));
/** A run of selected tests does not install a program that it does not need. */
const isSelected = (pattern: RegExp) =>
  filters.length === 0 || filters.some((filter) => pattern.test(filter));

interface Program {
  readonly debianPackage: string;
  readonly variable: string;
  readonly isNeeded: boolean;
  readonly instructions: string;
  find(): string | null;
}

const PROGRAMS: readonly Program[] = [
  {
    debianPackage: "chromium",
    variable: "CHROMIUM_PATH",
    isNeeded: isSelected(/browser|examples/),
    instructions: CHROMIUM_IS_MISSING,
    find: findChromium,
  },
  {
    debianPackage: "haproxy",
    variable: "HAPROXY_PATH",
    isNeeded: isSelected(/chaos|examples/),
    instructions: HAPROXY_IS_MISSING,
    find: findHaproxy,
  },
  {
    debianPackage: "faketime",
    variable: "FAKETIME_PATH",
    isNeeded: isSelected(/chaos/),
    instructions: FAKETIME_IS_MISSING,
    find: findFaketime,
  },
  {
    debianPackage: "prometheus",
    variable: "PROMTOOL_PATH",
    isNeeded: isSelected(/deploy|prometheus/),
    instructions: PROMTOOL_IS_MISSING,
    find: findPromtool,
  },
];

// The dashboard tests must run against the current sources.
spawnSync(process.execPath, [join(import.meta.dirname, "build-dashboard.ts"), "--if-stale"], {
  stdio: "inherit",
});

const missing = PROGRAMS.filter(
  (program) => program.isNeeded && program.find() === null && !install(program),
);
if (missing.length > 0) {
  for (const { instructions } of missing) console.error(instructions);
  process.exitCode = 1;
} else {
  process.exitCode = spawnSync("vitest", ["run", ...args], { stdio: "inherit" }).status ?? 1;
}

/** Works for root on Debian-like systems; otherwise a message says what to install. */
function install({ debianPackage, variable, find }: Program): boolean {
  if (process.env[variable] !== undefined || process.getuid?.() !== 0) return false;
  console.error(`${debianPackage} is missing; installing it with apt-get …`);
  return (
    aptGet("update") && aptGet("install", "-y", "--no-install-recommends", debianPackage) && find() !== null
  );
}

function aptGet(...command: string[]): boolean {
  // Another apt-get may hold the package lock.
  const { status } = spawnSync("apt-get", ["-qq", "-o", "DPkg::Lock::Timeout=300", ...command], {
    stdio: ["ignore", "inherit", "inherit"],
    // Packages with a daemon must not start it: `RUNLEVEL=1` says so to Debian's scripts.
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive", RUNLEVEL: "1" },
  });
  return status === 0;
}
