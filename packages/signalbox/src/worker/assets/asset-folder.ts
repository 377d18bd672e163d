/**
 * The files of a folder, by the path of a URL.
 *
 * Invariants:
 * 1. Only regular files inside the folder are found: no `..`, no link that leads outside, no name with a NUL or a backslash.
 * 2. `_headers` and `_redirects` configure the originals' file server, and `_worker.js` is the server's code: they are not files of the site.
 * 3. What `.assetsignore` lists is not part of the site, and neither are names that begin with a dot, other than `.well-known`: they hold
 *    secrets more often than pages (`.dev.vars`, `.git`).
 */
import { readFileSync } from "node:fs";
import { realpath, stat } from "node:fs/promises";
import { join, sep } from "node:path";
import { IgnoredFiles } from "./ignored-files.ts";

export interface AssetFile {
  readonly path: string;
  readonly size: number;
  readonly etag: string;
}

/** In the folder itself. A disk may ignore the case of letters. */
const NOT_SERVED: ReadonlySet<string> = new Set(["_headers", "_redirects", "_worker.js"]);
const WELL_KNOWN = ".well-known";

export class AssetFolder {
  readonly #folder: string;
  readonly #ignored: IgnoredFiles;
  #root: string | undefined;

  /** Throws if `.assetsignore` exists and cannot be read. */
  constructor(folder: string) {
    this.#folder = folder;
    this.#ignored = new IgnoredFiles(readIgnoreFile(folder));
  }

  /** `path` is decoded and starts with a slash; null: no such file. */
  async find(path: string): Promise<AssetFile | null> {
    const segments = path.slice(1).split("/");
    if (/[\0\\]/.test(path) || segments.includes("") || isHidden(segments) || this.#ignored.has(segments))
      return null;
    try {
      this.#root ??= await realpath(this.#folder);
      const file = await realpath(join(this.#root, ...segments));
      if (!file.startsWith(this.#root + sep)) return null;
      const { size, mtimeMs, ...stats } = await stat(file);
      if ((stats.mode & 0o170000) !== 0o100000) return null;
      return { path: file, size, etag: `"${Math.floor(mtimeMs).toString(16)}-${size.toString(16)}"` };
    } catch (error) {
      if (MEANS_ABSENT.has((error as NodeJS.ErrnoException).code ?? "")) return null;
      throw error;
    }
  }
}

const MEANS_ABSENT: ReadonlySet<string> = new Set(["ENOENT", "ENOTDIR", "ENAMETOOLONG", "ELOOP", "EACCES"]);

function isHidden(segments: readonly string[]): boolean {
  const [first = "", ...rest] = segments;
  if (NOT_SERVED.has(first.toLowerCase())) return true;
  return (first.startsWith(".") && first !== WELL_KNOWN) || rest.some((segment) => segment.startsWith("."));
}

/** Empty if there is no such file. */
function readIgnoreFile(folder: string): string {
  try {
    return readFileSync(join(folder, ".assetsignore"), "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return "";
    throw error;
  }
}
