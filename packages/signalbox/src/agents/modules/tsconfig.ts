/** The settings of a `tsconfig.json` that change how a module is found or compiled: `paths`, `baseUrl` and the JSX settings, with `extends`. */
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, isAbsolute, join, resolve } from "node:path";
import { parseJsonc } from "../../core/jsonc.ts";

export interface ProjectSettings {
  /** Aliases of module names: a pattern with at most one `*`, and absolute patterns of files. */
  readonly paths: readonly { readonly pattern: string; readonly files: readonly string[] }[];
  /** Bare names are looked up here first; null: not set. */
  readonly baseFolder: string | null;
  readonly jsx: string | undefined;
  readonly jsxImportSource: string | undefined;
}

interface CompilerOptions {
  readonly baseUrl?: string;
  readonly paths?: Readonly<Record<string, readonly string[]>>;
  readonly jsx?: string;
  readonly jsxImportSource?: string;
}

const NONE: ProjectSettings = { paths: [], baseFolder: null, jsx: undefined, jsxImportSource: undefined };
const MAX_EXTENDS = 16;

/** By folder; a folder without a file of its own has the settings of the one above. */
const byFolder = new Map<string, ProjectSettings>();

/** The settings for the files of a folder. An unreadable file counts as none: the compiler's own tools report it. */
export function projectSettings(folder: string): ProjectSettings {
  const known = byFolder.get(folder);
  if (known !== undefined) return known;
  const path = join(folder, "tsconfig.json");
  const parent = dirname(folder);
  const settings = existsSync(path)
    ? readSettings(path, MAX_EXTENDS)
    : parent === folder
      ? NONE
      : projectSettings(parent);
  byFolder.set(folder, settings);
  return settings;
}

function readSettings(path: string, depth: number): ProjectSettings {
  let file: { extends?: string | readonly string[]; compilerOptions?: CompilerOptions };
  try {
    file = parseJsonc(readFileSync(path, "utf8")) as typeof file;
  } catch {
    return NONE;
  }
  const parents = typeof file.extends === "string" ? [file.extends] : (file.extends ?? []);
  let settings = NONE;
  for (const parent of depth === 0 ? [] : parents) {
    const found = findParent(parent, path);
    if (found !== null) settings = { ...settings, ...withoutUndefined(readSettings(found, depth - 1)) };
  }
  const { baseUrl, paths, jsx, jsxImportSource } = file.compilerOptions ?? {};
  const folder = dirname(path);
  const baseFolder = baseUrl === undefined ? settings.baseFolder : resolve(folder, baseUrl);
  return {
    baseFolder,
    paths:
      paths === undefined
        ? settings.paths
        : Object.entries(paths).map(([pattern, files]) => ({
            pattern,
            files: files.map((file) =>
              resolve(baseUrl === undefined ? folder : resolve(folder, baseUrl), file),
            ),
          })),
    jsx: jsx ?? settings.jsx,
    jsxImportSource: jsxImportSource ?? settings.jsxImportSource,
  };
}

function findParent(name: string, from: string): string | null {
  if (name.startsWith(".") || isAbsolute(name)) {
    const path = resolve(dirname(from), name);
    return [path, `${path}.json`].find((candidate) => existsSync(candidate)) ?? null;
  }
  const require = createRequire(from);
  for (const candidate of [name, `${name}.json`, `${name}/tsconfig.json`]) {
    try {
      return require.resolve(candidate);
    } catch {
      // The next spelling.
    }
  }
  return null;
}

function withoutUndefined(settings: ProjectSettings): Partial<ProjectSettings> {
  return Object.fromEntries(
    Object.entries(settings).filter(([, value]) => value !== undefined && value !== null),
  );
}

/** The files that an alias stands for, in order; empty if the name is no alias. The pattern with the longest text before `*` applies. */
export function aliasesOf(name: string, { paths, baseFolder }: ProjectSettings): string[] {
  let best: { readonly length: number; readonly files: string[] } | null = null;
  for (const { pattern, files } of paths) {
    const star = pattern.indexOf("*");
    if (star === -1) {
      if (pattern === name) return [...files];
      continue;
    }
    const before = pattern.slice(0, star);
    const after = pattern.slice(star + 1);
    const isMatch =
      name.length >= before.length + after.length && name.startsWith(before) && name.endsWith(after);
    if (!isMatch || (best !== null && best.length >= before.length)) continue;
    const part = name.slice(before.length, name.length - after.length);
    // A function: `$` in a name has no special meaning.
    best = { length: before.length, files: files.map((file) => file.replace("*", () => part)) };
  }
  if (best !== null) return best.files;
  return baseFolder === null ? [] : [join(baseFolder, name)];
}
