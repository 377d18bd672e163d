/**
 * The process that makes one module: `make-plugin-module.ts <specifier> <importing file>` asks the bundler's plugins of the package `agents`, as the importing file finds it, and prints the
 * module as JSON. Errors are one line on stderr.
 */
import { createRequire, registerHooks } from "node:module";
import { pathToFileURL } from "node:url";
import type { MadeModule } from "./plugin-modules.ts";

const PACKAGE = "agents";
const COMPILER = "@rolldown/plugin-babel";

/** What such plugins call on the bundler. */
interface Bundler {
  warn(message: unknown): void;
  error(message: unknown): never;
  /** The folder of the program is watched anyway. */
  addWatchFile(path: string): void;
}
type Answer = string | { readonly id?: string; readonly code?: string } | null | undefined;
type Hook = (this: Bundler, ...args: string[]) => Answer | Promise<Answer>;
interface Plugin {
  readonly resolveId?: Hook | { readonly handler: Hook };
  readonly load?: Hook | { readonly handler: Hook };
}

const warnings: string[] = [];
const bundler: Bundler = {
  warn: (message) => void warnings.push(messageOf(message)),
  error(message) {
    throw new Error(messageOf(message));
  },
  addWatchFile: () => undefined,
};

// The package has a second plugin, which compiles decorators and needs all of Babel. Modules are compiled by the server.
registerHooks({
  resolve: (name, context, nextResolve) =>
    name === COMPILER
      ? { url: "data:text/javascript,export default () => null", shortCircuit: true }
      : nextResolve(name, context),
});

const [specifier = "", importer = ""] = process.argv.slice(2);
try {
  const made: MadeModule = { source: await makeModule(), warnings };
  process.stdout.write(JSON.stringify(made));
} catch (error) {
  process.stderr.write(messageOf(error));
  process.exitCode = 1;
}

async function makeModule(): Promise<string> {
  const plugins = await loadPlugins();
  const id = await firstAnswer(plugins, "resolveId", specifier, importer);
  if (id === null) throw new Error(`the package "${PACKAGE}" that is installed has no such module`);
  const source = await firstAnswer(plugins, "load", id);
  if (source === null) throw new Error(`the package "${PACKAGE}" that is installed did not load it`);
  return source;
}

async function loadPlugins(): Promise<readonly Plugin[]> {
  let path: string;
  try {
    path = createRequire(importer).resolve(`${PACKAGE}/vite`);
  } catch (cause) {
    throw new Error(`it needs the package "${PACKAGE}" beside ${importer}`, { cause });
  }
  const { default: plugin } = (await import(pathToFileURL(path).href)) as { readonly default: () => unknown };
  return listOf(await plugin());
}

/** A bundler takes lists of lists, promises of plugins, and nothing in place of a plugin. */
async function listOf(given: unknown): Promise<Plugin[]> {
  const value = await given;
  if (Array.isArray(value)) return (await Promise.all(value.map(listOf))).flat();
  return typeof value === "object" && value !== null ? [value] : [];
}

/** As a bundler asks its plugins: the first one that has an answer. */
async function firstAnswer(
  plugins: readonly Plugin[],
  name: "resolveId" | "load",
  ...args: string[]
): Promise<string | null> {
  for (const plugin of plugins) {
    const hook = plugin[name];
    if (hook === undefined) continue;
    const handler = typeof hook === "function" ? hook : hook.handler;
    const answer = await handler.call(bundler, ...args);
    const text = typeof answer === "string" ? answer : (answer?.id ?? answer?.code);
    if (text !== undefined) return text;
  }
  return null;
}

function messageOf(error: unknown): string {
  return error instanceof Error || (typeof error === "object" && error !== null && "message" in error)
    ? String(error.message)
    : String(error);
}
