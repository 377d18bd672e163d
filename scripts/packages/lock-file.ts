/** Reads package-lock.json: the installed packages and what each depends on. */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";

export interface LockedPackage {
  version?: string;
  integrity?: string;
  license?: string;
  /** True for a link to a package of the repository; `resolved` is then its folder. */
  link?: boolean;
  resolved?: string;
  dependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
}

export interface LockFile {
  packages: Record<string, LockedPackage>;
}

export interface Located {
  /** The key in the lock file, e.g. `node_modules/pg`. */
  readonly path: string;
  readonly entry: LockedPackage;
}

export function readLockFile(root: string): LockFile {
  return JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as LockFile;
}

/** The package that an import of `name` in the folder `from` finds, as Node searches it; undefined for an optional one that is absent. */
export function locate({ packages }: LockFile, name: string, from: string): Located | undefined {
  for (let folder = from; ; folder = dirname(folder)) {
    const path = join(folder === "." ? "" : folder, "node_modules", name);
    const entry = packages[path];
    if (entry !== undefined) {
      const target = entry.link === true ? (entry.resolved ?? "") : path;
      return { path: target, entry: packages[target] ?? entry };
    }
    if (folder === "." || folder === "") return undefined;
  }
}

/** The name of a package by its key: `node_modules/a/node_modules/@b/c` is `@b/c`. */
export function nameOfPath(path: string): string {
  return path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
}
