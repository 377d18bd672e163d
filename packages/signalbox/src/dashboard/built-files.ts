/**
 * The dashboard's built files, read into memory once: they are a few hundred kilobytes, and a map of known names cannot be talked into
 * reading another file. Compressed twins (`.br`, `.gz`) are made by the build, not per request.
 */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { extname, join, relative, sep } from "node:path";

export interface BuiltFile {
  readonly contentType: string;
  readonly etag: string;
  /** True for files whose name holds a hash of their content. */
  readonly isImmutable: boolean;
  readonly plain: Buffer;
  readonly br?: Buffer;
  readonly gzip?: Buffer;
}

/** By path relative to the build folder, with `/`. */
export type BuiltFiles = ReadonlyMap<string, BuiltFile>;

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

const isSource = import.meta.filename.endsWith(".ts");

/** Beside the compiled service when published; in its own workspace when run from source. */
export const BUILD_FOLDER = isSource
  ? join(import.meta.dirname, "../../../dashboard/dist")
  : join(import.meta.dirname, "../dashboard-app");

/** Null when there is no build. */
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
