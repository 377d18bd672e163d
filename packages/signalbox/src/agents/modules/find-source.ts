/**
 * Finds the file that an import of a program means, where Node's own rules find none: bundlers accept names without an ending, a folder for its
 * index file, the ending of the compiled file (`.js` for `.ts`), and the aliases of `tsconfig.json`.
 */
import { statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { aliasesOf, projectSettings } from "./tsconfig.ts";

const ENDINGS = [".ts", ".tsx", ".mts", ".js", ".jsx", ".mjs", ".json"];
/** What a compiled file was compiled from. */
const SOURCES: Readonly<Record<string, readonly string[]>> = {
  ".js": [".ts", ".tsx", ".jsx"],
  ".jsx": [".tsx"],
  ".mjs": [".mts"],
};

/** `specifier` without query; `parent` is the URL of the importing file. Null: no such file. */
export function findSource(specifier: string, parent: string): string | null {
  const folder = dirname(fileURLToPath(parent));
  if (isRelative(specifier)) return findFile(join(folder, specifier));
  if (specifier.startsWith("/")) return findFile(specifier);
  for (const candidate of aliasesOf(specifier, projectSettings(folder))) {
    const file = findFile(candidate);
    if (file !== null) return file;
  }
  return null;
}

/** True if an alias of the project may stand for the name, which must then be tried before packages. */
export function isAlias(specifier: string, parent: string): boolean {
  const { paths } = projectSettings(dirname(fileURLToPath(parent)));
  return paths.length > 0 && aliasesOf(specifier, { ...NO_BASE, paths }).length > 0;
}

const NO_BASE = { baseFolder: null, jsx: undefined, jsxImportSource: undefined };

export function isRelative(specifier: string): boolean {
  return specifier.startsWith("./") || specifier.startsWith("../") || specifier === "." || specifier === "..";
}

function findFile(path: string): string | null {
  if (isFile(path)) return path;
  const compiled = /\.(js|jsx|mjs)$/.exec(path)?.[0];
  const sources = SOURCES[compiled ?? ""] ?? [];
  const stem = path.slice(0, path.length - (compiled?.length ?? 0));
  const candidates = [
    ...sources.map((ending) => stem + ending),
    ...ENDINGS.map((ending) => path + ending),
    ...ENDINGS.map((ending) => join(path, `index${ending}`)),
  ];
  return candidates.find((candidate) => isFile(candidate)) ?? null;
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
}
