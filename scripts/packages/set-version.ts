/** Writes one version into the manifests of all packages, and into their entries of package-lock.json. */
import { existsSync, globSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { LockFile } from "./lock-file.ts";
import { type Manifest, withVersion } from "./published.ts";

export function setVersion(root: string, version: string): void {
  const lockFile = join(root, "package-lock.json");
  const lock = JSON.parse(readFileSync(lockFile, "utf8")) as LockFile;
  for (const path of globSync("{packages,examples}/*/package.json", { cwd: root })) {
    const file = join(root, path);
    const manifest = withVersion(JSON.parse(readFileSync(file, "utf8")) as Manifest, version);
    writeFileSync(file, `${JSON.stringify(manifest, null, 2)}\n`);
    const entry = lock.packages[path.replace(/\/package\.json$/, "")];
    if (entry === undefined)
      throw new Error(`package-lock.json does not know ${path}: run npm install first`);
    if (entry.version !== undefined) entry.version = manifest.version;
    if (entry.dependencies !== undefined && manifest.dependencies !== undefined)
      entry.dependencies = { ...manifest.dependencies };
  }
  if (existsSync(lockFile)) writeFileSync(lockFile, `${JSON.stringify(lock, null, 2)}\n`);
}
