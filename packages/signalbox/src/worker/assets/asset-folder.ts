/**
 * The files of a folder, by the path of a URL.
 *
 * Invariants:
 * 1. Only regular files inside the folder are found: no `..`, no link that leads outside, no name with a NUL or a backslash.
 * 2. `_headers`, `_redirects` and `.assetsignore` configure the originals' file server and are not files of the site.
 */
import { realpath, stat } from "node:fs/promises";
import { join, sep } from "node:path";

export interface AssetFile {
  readonly path: string;
  readonly size: number;
  readonly etag: string;
}

const NOT_SERVED: ReadonlySet<string> = new Set(["_headers", "_redirects", ".assetsignore"]);

export class AssetFolder {
  readonly #folder: string;
  #root: string | undefined;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** `path` is decoded and starts with a slash; null: no such file. */
  async find(path: string): Promise<AssetFile | null> {
    const segments = path.slice(1).split("/");
    if (segments.some((segment) => segment === "" || segment === "." || segment === "..")) return null;
    if (/[\0\\]/.test(path) || (segments.length === 1 && NOT_SERVED.has(segments[0] ?? ""))) return null;
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
