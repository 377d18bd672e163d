/**
 * `npm test`: builds the dashboard and installs Chromium, HAProxy, libfaketime, promtool, nginx, Caddy, systemd-analyze, zsh and fish if necessary,
 * then runs the tests. Arguments are passed to the test runner.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { findHaproxy, HAPROXY_IS_MISSING } from "../examples/cluster/haproxy.ts";
import { findPromtool, PROMTOOL_IS_MISSING } from "../test/support/promtool-path.ts";
import { findShell, shellIsMissing } from "../test/support/shell-path.ts";
import { CADDY_IS_MISSING, findCaddy, findNginx, NGINX_IS_MISSING } from "../test/support/proxy-paths.ts";
import { findSystemdAnalyze, SYSTEMD_IS_MISSING } from "../test/support/systemd-path.ts";
import { CHROMIUM_IS_MISSING, findChromium } from "../test/browser/support/chromium-path.ts";
import { SECOND_TRY_VARIABLE, type SecondTry } from "./support/second-try.ts";
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
    isNeeded: isSelected(/chaos|examples|deploy/),
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
  ...(["zsh", "fish"] as const).map((shell) => ({
    debianPackage: shell,
    variable: `${shell.toUpperCase()}_PATH`,
    isNeeded: isSelected(/completion/),
    instructions: shellIsMissing(shell),
    find: () => findShell(shell),
  })),
  {
    debianPackage: "nginx-light",
    variable: "NGINX_PATH",
    isNeeded: isSelected(/deploy|proxies/),
    instructions: NGINX_IS_MISSING,
    find: findNginx,
  },
  {
    debianPackage: "caddy",
    variable: "CADDY_PATH",
    isNeeded: isSelected(/deploy|proxies/),
    instructions: CADDY_IS_MISSING,
    find: findCaddy,
  },
  {
    debianPackage: "systemd",
    variable: "SYSTEMD_ANALYZE_PATH",
    isNeeded: isSelected(/deploy|systemd/),
    instructions: SYSTEMD_IS_MISSING,
    find: findSystemdAnalyze,
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
  process.exitCode = runTests();
}

function runTests(): number {
  const folder = mkdtempSync(join(tmpdir(), "signalbox-tests-"));
  try {
    const list = join(folder, "second-try.json");
    const code = vitest(args, { [SECOND_TRY_VARIABLE]: list });
    if (!existsSync(list)) return code;
    const { failed, notStarted } = JSON.parse(readFileSync(list, "utf8")) as SecondTry;
    const lines = [
      "\nThese files run once more, one after the other. One that passes now is a defect to find, of the test or of the product:",
      ...failed.map((file) => `  failed: ${relative(process.cwd(), file)}`),
      ...notStarted.map((file) => `  its worker did not start in time: ${relative(process.cwd(), file)}`),
    ];
    console.log(lines.join("\n"));
    const flags = args.filter((arg) => arg.startsWith("-"));
    return vitest([...flags, "--maxWorkers=1", ...failed, ...notStarted]);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function vitest(given: readonly string[], env: Record<string, string> = {}): number {
  const { status } = spawnSync("vitest", ["run", ...given], {
    stdio: "inherit",
    env: { ...process.env, ...env },
  });
  return status ?? 1;
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
