/**
 * The built files of the dashboard. All of them, a few megabytes with the compressed variants (`.br`, `.gz`) of the build, are read into memory when
 * the first is asked for: no request can read any other file, and a server without visitors spends nothing on them.
 * See packages/dashboard/README.md.
 */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { extname, join, relative, sep } from "node:path";

export interface BuiltFile {
  readonly contentType: string;
  readonly etag: string;
  /** True if the name contains a hash of the content. */
  readonly isImmutable: boolean;
  readonly plain: Buffer;
  readonly br?: Buffer;
  readonly gzip?: Buffer;
}

/** By path relative to the build folder, with `/` as separator. */
export type BuiltFiles = ReadonlyMap<string, BuiltFile>;

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".woff2": "font/woff2",
};

const isSource = import.meta.filename.endsWith(".ts");

/** In the published package next to the compiled service; in the repository in the workspace of the dashboard. */
export const BUILD_FOLDER = isSource
  ? join(import.meta.dirname, "../../../dashboard/dist")
  : join(import.meta.dirname, "../dashboard-app");

/** Returns null if the dashboard is not built. */
export function readBuiltFiles(folder: string = BUILD_FOLDER): BuiltFiles | null {
  const names = listFiles(folder);
  if (!names.includes("index.html")) return null;
  const read = (name: string) => (names.includes(name) ? readFileSync(join(folder, name)) : undefined);
  const files = new Map<string, BuiltFile>();
  for (const name of names) {
    const contentType = CONTENT_TYPES[extname(name)];
    const plain = contentType === undefined ? undefined : read(name);
    if (contentType === undefined || plain === undefined) continue;
    const br = read(`${name}.br`);
    const gzip = read(`${name}.gz`);
    files.set(name, {
      contentType,
      etag: `"${createHash("sha256").update(plain).digest("base64url").slice(0, 16)}"`,
      isImmutable: name.startsWith("assets/"),
      plain,
      ...(br === undefined ? {} : { br }),
      ...(gzip === undefined ? {} : { gzip }),
    });
  }
  return files;
}

function listFiles(folder: string): string[] {
  try {
    return readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => relative(folder, join(entry.parentPath, entry.name)).split(sep).join("/"));
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
    throw error;
  }
}
