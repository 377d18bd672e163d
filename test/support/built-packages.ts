/**
 * The packages as `npm run build` makes them; they are built if they are older than their sources. Several test files need them and run at the same
 * time, so one builds or reads and the others wait.
 */
import { spawnSync } from "node:child_process";
import { existsSync, globSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const ROOT = join(import.meta.dirname, "../..");
const CACHE = join(ROOT, "node_modules/.cache");
const LOCK = join(CACHE, "build-of-packages");
const STAMP = join(CACHE, "built-packages");
const SOURCES = [
  "packages/{protocol,translate,client,create-signalbox,signalbox}/{src,bin,template}/**/*",
  "packages/{protocol,translate,client,create-signalbox,signalbox}/*.{json,md}",
  "packages/dashboard/{src/**/*,index.html,vite.config.ts}",
  "scripts/{build*,packages/*}.ts",
  "tsconfig.build.json",
];
const RESULTS = ["protocol", "translate", "client", "create-signalbox", "signalbox"].map((name) =>
  join(ROOT, "packages", name, "dist"),
);

/** Runs `work`, with the folders of the packages, while they are built and nobody builds them anew. */
export async function withBuiltPackages<T>(work: (folders: readonly string[]) => T): Promise<T> {
  return whileLocked(() => {
    if (!isBuilt()) buildWith(["scripts/build.ts"]);
    return work(RESULTS);
  });
}

/** Runs a script that builds the packages; returns its output. */
export async function buildPackagesWith(args: readonly string[]): Promise<string> {
  return whileLocked(() => buildWith(args));
}

async function whileLocked<T>(work: () => T): Promise<T> {
  mkdirSync(CACHE, { recursive: true });
  while (!takeLock()) await sleep(100);
  try {
    return work();
  } finally {
    rmSync(LOCK, { force: true });
  }
}

function buildWith(args: readonly string[]): string {
  const startedAt = new Date();
  const build = spawnSync(process.execPath, ["--disable-warning=ExperimentalWarning", ...args], {
    cwd: ROOT,
    encoding: "utf8",
    env: { ...process.env, PATH: `${join(ROOT, "node_modules/.bin")}:${process.env["PATH"]}` },
  });
  if (build.status !== 0) throw new Error(`${args.join(" ")} failed: ${build.stdout}${build.stderr}`);
  writeFileSync(STAMP, startedAt.toISOString());
  return build.stdout;
}

function isBuilt(): boolean {
  if (!existsSync(STAMP) || !RESULTS.every((folder) => existsSync(join(folder, "package.json"))))
    return false;
  const builtAt = Date.parse(readFileSync(STAMP, "utf8"));
  return globSync(SOURCES, { cwd: ROOT }).every((file) => statSync(join(ROOT, file)).mtimeMs < builtAt);
}

/** A lock of a process that has ended is removed. */
function takeLock(): boolean {
  try {
    writeFileSync(LOCK, String(process.pid), { flag: "wx" });
    return true;
  } catch {
    // Another process builds, or did not end in order.
  }
  try {
    process.kill(Number(readFileSync(LOCK, "utf8")), 0);
  } catch {
    rmSync(LOCK, { force: true });
  }
  return false;
}
