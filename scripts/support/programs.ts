/**
 * Programs that tests need and npm does not have. As root on Debian they are fetched if they are missing; otherwise a message says what to install.
 *
 * 1. Chromium and shells are installed. A package with a service is not: its files are unpacked into `.cache/programs`, so that nothing is
 *    enabled or started, and the machine is left as it was.
 * 2. Each step is announced in a line.
 */
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { findHaproxy, HAPROXY_IS_MISSING } from "../../examples/cluster/haproxy.ts";
import { CHROMIUM_IS_MISSING, findChromium } from "../../test/browser/support/chromium-path.ts";
import { FAKETIME_IS_MISSING, findFaketime } from "../../test/chaos/cluster/fake-clock.ts";
import { findPromtool, PROMTOOL_IS_MISSING } from "../../test/support/promtool-path.ts";
import { CADDY_IS_MISSING, findCaddy, findNginx, NGINX_IS_MISSING } from "../../test/support/proxy-paths.ts";
import { findShell, shellIsMissing } from "../../test/support/shell-path.ts";
import { findSystemdAnalyze, SYSTEMD_IS_MISSING } from "../../test/support/systemd-path.ts";

const CACHE = join(import.meta.dirname, "../../.cache/programs");

export interface Program {
  readonly debianPackage: string;
  /** The environment variable with its path. */
  readonly variable: string;
  /** Names of test files that need it. */
  readonly usedBy: RegExp;
  readonly instructions: string;
  /** Its path in the package, if the package also has a service. */
  readonly unpacked?: string;
  /** Folders of the package that it looks for elsewhere, by the variable that names them. */
  readonly folders?: Readonly<Record<string, string>>;
  find(): string | null;
}

export const CHROMIUM: Program = {
  debianPackage: "chromium-headless-shell",
  variable: "CHROMIUM_PATH",
  usedBy: /browser|examples|screenshots/,
  instructions: CHROMIUM_IS_MISSING,
  find: findChromium,
};

/** Only the long tests use them. */
export const OTHER_PROGRAMS: readonly Program[] = [
  {
    debianPackage: "haproxy",
    variable: "HAPROXY_PATH",
    usedBy: /chaos|examples|deploy/,
    instructions: HAPROXY_IS_MISSING,
    unpacked: "usr/sbin/haproxy",
    find: findHaproxy,
  },
  {
    debianPackage: "faketime",
    variable: "FAKETIME_PATH",
    usedBy: /chaos/,
    instructions: FAKETIME_IS_MISSING,
    find: findFaketime,
  },
  {
    debianPackage: "prometheus",
    variable: "PROMTOOL_PATH",
    usedBy: /deploy|prometheus/,
    instructions: PROMTOOL_IS_MISSING,
    unpacked: "usr/bin/promtool",
    find: findPromtool,
  },
  {
    debianPackage: "nginx-light",
    variable: "NGINX_PATH",
    usedBy: /deploy|proxies/,
    instructions: NGINX_IS_MISSING,
    unpacked: "usr/sbin/nginx",
    find: findNginx,
  },
  {
    debianPackage: "caddy",
    variable: "CADDY_PATH",
    usedBy: /deploy|proxies/,
    instructions: CADDY_IS_MISSING,
    unpacked: "usr/bin/caddy",
    find: findCaddy,
  },
  {
    debianPackage: "systemd",
    variable: "SYSTEMD_ANALYZE_PATH",
    usedBy: /deploy|systemd/,
    instructions: SYSTEMD_IS_MISSING,
    unpacked: "usr/bin/systemd-analyze",
    folders: { SYSTEMD_UNIT_PATH: "lib/systemd/system" },
    find: findSystemdAnalyze,
  },
  ...(["zsh", "fish"] as const).map((shell) => ({
    debianPackage: shell,
    variable: `${shell.toUpperCase()}_PATH`,
    usedBy: /completion/,
    instructions: shellIsMissing(shell),
    find: () => findShell(shell),
  })),
];

/** Returns whether the program is there now, and sets its variable if it was unpacked. */
export function provide(program: Program): boolean {
  if (program.find() !== null) return true;
  if (process.env[program.variable] !== undefined) return false;
  return program.unpacked === undefined ? install(program) : unpack(program, program.unpacked);
}

function install({ debianPackage, find }: Program): boolean {
  if (!isRoot()) return false;
  console.error(`${debianPackage} is missing; installing it with apt-get …`);
  return (
    aptGet("update") && aptGet("install", "-y", "--no-install-recommends", debianPackage) && find() !== null
  );
}

function unpack({ debianPackage, variable, folders = {} }: Program, path: string): boolean {
  const folder = join(CACHE, debianPackage);
  const start = join(folder, "start");
  if (!existsSync(start)) {
    if (!isRoot()) return false;
    console.error(`${debianPackage} is missing; unpacking it into .cache/programs …`);
    const unfinished = `${folder}.unfinished`;
    rmSync(unfinished, { recursive: true, force: true });
    if (!download(debianPackage, unfinished)) return false;
    const root = join(folder, "files");
    // Libraries of packages that it depends on were unpacked with it.
    const libraries = globSync("{,usr/}lib/*-linux-*{,/systemd}/", { cwd: join(unfinished, "files") });
    const settings = [
      `LD_LIBRARY_PATH=${libraries.map((library) => join(root, library)).join(":")}`,
      ...Object.entries(folders).map(([name, at]) => `${name}=${join(root, at)}:`),
    ];
    writeFileSync(
      join(unfinished, "start"),
      `#!/bin/sh\n${settings.join(" ")} exec ${join(root, path)} "$@"\n`,
    );
    chmodSync(join(unfinished, "start"), 0o755);
    renameSync(unfinished, folder);
  }
  process.env[variable] = start;
  return true;
}

/** The package, and those that it needs and that are not installed. */
function download(debianPackage: string, folder: string): boolean {
  const archives = join(folder, "archives");
  mkdirSync(join(archives, "partial"), { recursive: true });
  const isDownloaded =
    aptGet("update") &&
    aptGet(
      "install",
      "-y",
      "--no-install-recommends",
      "--download-only",
      "-o",
      `Dir::Cache::Archives=${archives}`,
      debianPackage,
    );
  const packages = listFolder(archives).filter((name) => name.endsWith(".deb"));
  if (!isDownloaded || packages.length === 0) return false;
  const areUnpacked = packages.every((name) =>
    run("dpkg-deb", "-x", join(archives, name), join(folder, "files")),
  );
  rmSync(archives, { recursive: true });
  return areUnpacked;
}

function listFolder(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder) : [];
}

function isRoot(): boolean {
  return process.getuid?.() === 0;
}

/** Another apt-get may hold the package lock. */
function aptGet(...command: string[]): boolean {
  return run("apt-get", "-qq", "-o", "DPkg::Lock::Timeout=300", "-o", "APT::Sandbox::User=root", ...command);
}

function run(program: string, ...args: string[]): boolean {
  // The progress of an installation says little; its errors are printed.
  const { status } = spawnSync(program, args, {
    stdio: ["ignore", "ignore", "inherit"],
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
  });
  return status === 0;
}
