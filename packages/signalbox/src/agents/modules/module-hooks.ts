/**
 * Loader hooks for users' modules: TypeScript and JSX with standard decorators (Node strips types but does not support decorators), and `signalbox`
 * as this package, wherever the module is and whatever is installed there. In the worker mode also the modules `cloudflare:…`, and imports as
 * bundlers understand them.
 */
import { readFileSync } from "node:fs";
import { createRequire, registerHooks, type ResolveHookSync } from "node:module";
import { extname, join, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { compilerSettings, SYNTAX } from "./compiler-settings.ts";
import { findSource, isAlias, isRelative } from "./find-source.ts";
import { pluginModuleSource, pluginModuleUrl } from "./plugin-modules.ts";
import { rawModule, rawTypeOf } from "./raw-modules.ts";
import { showSourceLines } from "./source-lines.ts";
import { urlFor, type WorkerModules, workerOfUrl } from "./worker-modules.ts";

const PACKAGE_SOURCE = join(import.meta.dirname, "../..") + sep;
/** JavaScript in the published package, TypeScript in the repository. */
const ENTRY = new URL(import.meta.url.endsWith(".ts") ? "../../index.ts" : "../../index.js", import.meta.url)
  .href;
const DECORATOR = /^\s*(?:export\s+(?:default\s+)?)?@[A-Za-z_$]/m;
const PLATFORM = "cloudflare:";

let isRegistered = false;
/** By name, the first with an empty one. Empty: the worker mode is off. */
const workers = new Map<string, WorkerModules>();

export async function registerModuleHooks(
  workerModules: WorkerModules | null = null,
  worker = "",
): Promise<void> {
  if (workerModules !== null && !workers.has(worker)) workers.set(worker, workerModules);
  if (isRegistered) return;
  isRegistered = true;
  // Loaded on demand: most installations have no modules, and esbuild starts a process.
  const { transformSync } = await import("esbuild");
  const compiled = new Set<string>();
  showSourceLines((path) => compiled.has(path));
  registerHooks({
    resolve(specifier, context, nextResolve) {
      const found = resolveModule(specifier, context, nextResolve);
      const worker = workerOfUrl(context.parentURL);
      const isShared = userFile(found.url) === null && !specifier.startsWith(PLATFORM);
      return worker === "" || isShared || found.format === "commonjs"
        ? found
        : { ...found, url: urlFor(worker, found.url) };
    },
    load(url, context, nextLoad) {
      const path = userFile(url);
      if (path === null) return nextLoad(url, context);
      const worker = workers.get(workerOfUrl(url)) ?? null;
      const raw = pluginModuleSource(url) ?? rawSource(worker, url, path);
      if (raw !== null) return { format: "module", source: raw, shortCircuit: true };
      const ending = extname(path);
      // Node wants an import attribute; bundlers do not. A file loaded by `require` has no attributes, whatever the type says.
      const attributes = context.importAttributes as ImportAttributes | undefined;
      const isBareJson =
        worker !== null &&
        ending === ".json" &&
        attributes !== undefined &&
        attributes["type"] !== "json" &&
        !isInstalled(path) &&
        !context.conditions.includes("require");
      const syntax = isBareJson ? "json" : (SYNTAX[ending] ?? scriptSyntax(worker, path, ending));
      if (syntax === undefined || (worker === null && isInstalled(path))) return nextLoad(url, context);
      const { code } = transformSync(readFileSync(path, "utf8"), {
        ...compilerSettings(path, syntax),
        ...(worker === null || syntax === "json" || isInstalled(path)
          ? {}
          : { define: { ...worker.define } }),
        sourcemap: syntax === "json" ? false : "inline",
      });
      compiled.add(path);
      return { format: "module", source: code, shortCircuit: true };
    },
  });
}

const resolveModule: ResolveHookSync = (specifier, context, nextResolve) => {
  if (specifier === "signalbox")
    return {
      url: ENTRY,
      format: ENTRY.endsWith(".ts") ? "module-typescript" : "module",
      shortCircuit: true,
    };
  if (specifier.startsWith(PLATFORM)) return nextResolve(platformModule(specifier), context);
  const parent = context.parentURL;
  if (parent === undefined || userFile(parent) === null) return nextResolve(specifier, context);
  const plugin = workers.size === 0 ? null : pluginModuleUrl(specifier, parent);
  if (plugin !== null) return { url: plugin, format: "module", shortCircuit: true };
  if (!isUserFile(parent)) {
    if (workers.size === 0) return nextResolve(specifier, context);
    try {
      return nextResolve(specifier, context);
    } catch (error) {
      // A package that was made for bundlers only.
      const found = findInPackage(specifier, parent);
      if (found === null) throw error;
      return nextResolve(pathToFileURL(found).href, context);
    }
  }
  const [name = "", query] = specifier.split("?", 2);
  const suffix = query === undefined ? "" : `?${query}`;
  // An alias may have the name of a package, so it is tried first; other names are Node's first.
  const alias = !isRelative(name) && isAlias(name, parent) ? findSource(name, parent) : null;
  if (alias !== null) return nextResolve(pathToFileURL(alias).href + suffix, context);
  try {
    return nextResolve(specifier, context);
  } catch (error) {
    const found = findSource(name, parent);
    if (found === null) throw error;
    return nextResolve(pathToFileURL(found).href + suffix, context);
  }
};

/** JavaScript of a worker's program needs a compiler when it has decorators, or names that the wrangler file defines. */
function scriptSyntax(worker: WorkerModules | null, path: string, ending: string): "js" | undefined {
  if (worker === null || (ending !== ".js" && ending !== ".mjs") || isInstalled(path)) return undefined;
  const source = readFileSync(path, "utf8");
  const isDefined = (name: string) => source.includes(name);
  return DECORATOR.test(source) || Object.keys(worker.define).some(isDefined) ? "js" : undefined;
}

/** What a bundler takes an import inside a package for: names without an ending, and folders. Null: no such file. */
function findInPackage(specifier: string, parent: string): string | null {
  if (isRelative(specifier)) return findSource(specifier, parent);
  if (specifier.startsWith("#") || specifier.includes(":")) return null;
  // `require.resolve` comes back here with what it does not find.
  if (isFinding) return null;
  isFinding = true;
  try {
    // Node's older rules try endings.
    return createRequire(parent).resolve(specifier);
  } catch {
    return null;
  } finally {
    isFinding = false;
  }
}

let isFinding = false;

/** Throws for a module that does not exist here, with what to do. */
function platformModule(specifier: string): string {
  const worker = workers.get("");
  if (worker === undefined)
    throw new Error(
      `the module ${specifier} exists in the worker mode only: start with --worker FILE, or import from "signalbox" instead of "agents"`,
    );
  const url = worker.platform[specifier.slice(PLATFORM.length)];
  if (url === undefined) throw new Error(`the module ${specifier} is not available on Signalbox`);
  return url;
}

/** `?raw` is a bundler's spelling for text; other files are raw by rule. */
function rawSource(worker: WorkerModules | null, url: string, path: string): string | null {
  if (worker === null || isInstalled(path)) {
    if (worker === null || !path.endsWith(".wasm")) return null;
    return rawModule(path, "CompiledWasm");
  }
  if (new URL(url).searchParams.has("raw")) return rawModule(path, "Text");
  const type = rawTypeOf(path, worker.folder, worker.rules);
  return type === null ? null : rawModule(path, type);
}

function isUserFile(url: string): boolean {
  const path = userFile(url);
  return path !== null && !isInstalled(path);
}

/** The path of a file that does not belong to this package; else null. */
function userFile(url: string): string | null {
  if (!url.startsWith("file:")) return null;
  const path = fileURLToPath(url);
  return path.startsWith(PACKAGE_SOURCE) ? null : path;
}

function isInstalled(path: string): boolean {
  return path.includes(`${sep}node_modules${sep}`);
}
