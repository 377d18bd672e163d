/**
 * `npm run build:dashboard`: builds packages/dashboard into its dist folder. It takes a few seconds.
 * `--if-possible` (used by `npm ci`): does not fail if the development tools are not installed; the dashboard page then names the missing build.
 * `--if-stale`: builds only if a source is newer than dist.
 */
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";

const FOLDER = join(import.meta.dirname, "../packages/dashboard");
/** The sources of the build: the dashboard and the packages it imports. */
const SOURCES = [
  "dashboard/src",
  "dashboard/index.html",
  "dashboard/vite.config.ts",
  "client/src",
  "protocol/src",
];

if (!process.argv.includes("--if-stale") || isStale()) await build();

async function build(): Promise<void> {
  // Also when a test builds: with another value the libraries would be those for development, twice as large.
  process.env["NODE_ENV"] = "production";
  const vite = await import("vite").catch((error: unknown) => {
    if (!process.argv.includes("--if-possible")) throw error;
    console.log("dashboard not built: the development tools are not installed");
    return null;
  });
  await vite?.build({
    configFile: join(FOLDER, "vite.config.ts"),
    logLevel: "warn",
    // On a slow machine, compression would be reported as a slow plugin at every `npm ci`.
    build: { rolldownOptions: { checks: { pluginTimings: false } } },
  });
}

function isStale(): boolean {
  const built = modifiedAt(join(FOLDER, "dist/index.html"));
  return SOURCES.some((source) => newest(join(FOLDER, "..", source)) > built);
}

function newest(path: string): number {
  const own = modifiedAt(path);
  if (!statSync(path).isDirectory()) return own;
  return Math.max(own, ...readdirSync(path).map((name) => newest(join(path, name))));
}

function modifiedAt(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}
