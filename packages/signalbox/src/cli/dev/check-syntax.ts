/** Finds syntax errors before a restart, so that the version that runs can stay. */
import { readFile } from "node:fs/promises";
import { extname } from "node:path";

const SYNTAX: Readonly<Record<string, "ts" | "tsx" | "js" | "jsx">> = {
  ".ts": "ts",
  ".mts": "ts",
  ".cts": "ts",
  ".tsx": "tsx",
  ".js": "js",
  ".mjs": "js",
  ".cjs": "js",
  ".jsx": "jsx",
};

export interface BrokenFile {
  readonly path: string;
  /** The errors with file, line, column and the lines around them. */
  readonly text: string;
}

export async function findBroken(
  paths: Iterable<string>,
  folder: string,
  hasColour: boolean,
): Promise<BrokenFile[]> {
  const found = await Promise.all([...paths].map((path) => checkFile(path, folder, hasColour)));
  return found.filter((one) => one !== null);
}

/** Null for a file without errors, and for one that cannot be read: the service reports that itself. */
async function checkFile(path: string, folder: string, hasColour: boolean): Promise<BrokenFile | null> {
  const loader = SYNTAX[extname(path)];
  if (loader === undefined) return null;
  const text = await readFile(path, "utf8").catch(() => null);
  if (text === null) return null;
  const { formatMessages, transform } = await import("esbuild");
  const sourcefile = path.startsWith(`${folder}/`) ? path.slice(folder.length + 1) : path;
  try {
    await transform(text, { loader, sourcefile, logLevel: "silent" });
    return null;
  } catch (error) {
    const { errors } = error as { errors?: Parameters<typeof formatMessages>[0] };
    if (errors === undefined) return null;
    return { path, text: (await formatMessages(errors, { kind: "error", color: hasColour })).join("") };
  }
}
