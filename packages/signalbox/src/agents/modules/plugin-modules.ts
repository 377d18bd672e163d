/**
 * Modules that the package `agents` makes itself, with its plugin for bundlers: `agents:skills` is the folder `skills` beside the importing file. What such a module contains is the
 * business of the version that the program has installed, so that version's plugin is run, and its errors are passed on.
 *
 * It runs in a process of its own: loader hooks cannot wait for its promises, and the compiler that it loads would stay in the memory of the server.
 */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const PREFIX = "agents:";
/** In the URL of such a module, which is otherwise that of the importing file. */
const PARAMETER = "signalbox-plugin-module";
/** JavaScript in the published package, TypeScript in the repository. */
const ENDING = import.meta.url.endsWith(".ts") ? ".ts" : ".js";
const MAIN = fileURLToPath(new URL(`./make-plugin-module${ENDING}`, import.meta.url));

/** What the process answers. */
export type MadeModule = { readonly source: string; readonly warnings: readonly string[] };

/** Null: an import of another kind. */
export function pluginModuleUrl(specifier: string, parent: string): string | null {
  if (!specifier.startsWith(PREFIX)) return null;
  const url = new URL(parent);
  url.searchParams.set(PARAMETER, specifier);
  return url.href;
}

/** The source of the module; null: the URL is that of a file. */
export function pluginModuleSource(url: string): string | null {
  const specifier = url.includes(PARAMETER) ? new URL(url).searchParams.get(PARAMETER) : null;
  if (specifier === null) return null;
  const { stdout, stderr, status } = spawnSync(process.execPath, [MAIN, specifier, fileURLToPath(url)], {
    encoding: "utf8",
    // Of the variables of the server, which are its secrets, the compiler needs none.
    env: { PATH: process.env["PATH"] ?? "" },
    // Skills contain their files.
    maxBuffer: Number.POSITIVE_INFINITY,
  });
  if (status !== 0) throw new Error(`the module ${specifier} cannot be made: ${stderr.trim()}`);
  const { source, warnings } = JSON.parse(stdout) as MadeModule;
  for (const warning of warnings) process.emitWarning(`${specifier}: ${warning}`);
  return source;
}
