/** Writes one version into the manifests of all packages, into their entries of package-lock.json, and where files for deployment name it. */
import { existsSync, globSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { LockFile } from "./lock-file.ts";
import { type Manifest, withVersion } from "./published.ts";

/** The chart and the label of the image. */
const OTHER_PLACES: readonly [string, RegExp][] = [
  ["deploy/helm/signalbox/Chart.yaml", /^((?:version|appVersion): "?)[^"\n]+/gm],
  ["deploy/docker/Dockerfile", /(image\.version=")[^"]+/g],
];

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
  for (const [path, place] of OTHER_PLACES) {
    const file = join(root, path);
    if (existsSync(file)) writeFileSync(file, readFileSync(file, "utf8").replaceAll(place, `$1${version}`));
  }
  if (existsSync(lockFile)) writeFileSync(lockFile, `${JSON.stringify(lock, null, 2)}\n`);
}
