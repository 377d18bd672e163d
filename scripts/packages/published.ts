/** The packages that are published, and their manifests. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

export const ROOT = join(import.meta.dirname, "../..");

/** Folders below packages/. A package stands after those that it depends on, so that this is also the order of publication. */
export const PUBLISHED = ["protocol", "translate", "client", "create-signalbox", "signalbox"] as const;

export interface Manifest {
  name: string;
  version: string;
  files: readonly string[];
  exports: Record<string, string>;
  repository: { type: string; url: string; directory: string };
  dependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
  [field: string]: unknown;
}

export function packageFolder(name: string): string {
  return join(ROOT, "packages", name);
}

export function readManifest(folder: string): Manifest {
  return JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Manifest;
}

/** The manifest with another version, for the package itself and for packages of this repository that it depends on. */
export function withVersion(manifest: Manifest, version: string): Manifest {
  const own = new Set(PUBLISHED.map((name) => readManifest(packageFolder(name)).name));
  const ranges = Object.entries(manifest.dependencies ?? {}).map(
    ([name, range]) => [name, own.has(name) ? `^${version}` : range] as const,
  );
  return {
    ...manifest,
    // Private packages of the repository (examples) have no version of their own.
    ...(manifest.version === "0.0.0" ? {} : { version }),
    ...(ranges.length === 0 ? {} : { dependencies: Object.fromEntries(ranges) }),
  };
}
