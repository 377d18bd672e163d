/** Builds all published packages into their `dist/` folders, the service with the dashboard. */
import { spawnSync } from "node:child_process";
import { cpSync } from "node:fs";
import { join } from "node:path";
import { buildPackage } from "./build-package.ts";
import { packageFolder, PUBLISHED, ROOT } from "./published.ts";

/** `version`: written into the built manifests instead of the version of the sources. */
export function buildAll(version?: string): void {
  for (const name of PUBLISHED) buildPackage(name, version);
  const dashboard = spawnSync(process.execPath, [join(ROOT, "scripts/build-dashboard.ts"), "--if-stale"], {
    stdio: "inherit",
    cwd: ROOT,
  });
  if (dashboard.status !== 0) throw new Error("the dashboard cannot be built");
  // The service expects the dashboard beside its compiled files.
  const app = join(packageFolder("signalbox"), "dist/src/dashboard-app");
  cpSync(join(packageFolder("dashboard"), "dist"), app, { recursive: true });
}
