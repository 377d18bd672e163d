/** Loads the modules that export agent classes. Every error is one line that names the module. */
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, dirname, extname, relative, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { ConfigError } from "../../config/index.ts";
import { userPlace } from "../../core/own-frames.ts";
import { notePendingTimers } from "../../engines/turn-runtime/index.ts";
import { AgentDefinition, isAgentClass } from "../instance/agent-definition.ts";
import type { AgentClass } from "../api/agent.ts";
import { registerModuleHooks } from "./module-hooks.ts";

/** Names of exports that say nothing about their value: those of `export default` and of a CommonJS module. */
const UNNAMED: ReadonlySet<string> = new Set(["default", "module.exports"]);

/** The source of classes that are given as values. */
const OWN_PROGRAM = "this program";

/** Definitions by their names in URLs. A user's class replaces the built-in agent of the same name. */
export async function loadAgents(
  { builtIn, own }: { readonly builtIn: readonly AgentClass[]; readonly own: readonly AgentClass[] },
  modules: readonly string[],
  folder: string,
): Promise<ReadonlyMap<string, AgentDefinition>> {
  const definitions = new Map<string, AgentDefinition>();
  for (const agentClass of builtIn) {
    const definition = new AgentDefinition(agentClass, null);
    definitions.set(definition.kebab, definition);
  }
  for (const agentClass of own) {
    if (!isAgentClass(agentClass)) throw new ConfigError("agents: expected a class that extends Agent");
    const definition = define(agentClass, agentClass.name, OWN_PROGRAM, null);
    definitions.set(definition.kebab, definition);
  }
  if (own.length + modules.length > 0) notePendingTimers();
  if (modules.length > 0) await registerModuleHooks();
  for (const module of modules) {
    const path = resolve(folder, module);
    for (const [exportName, agentClass] of await loadClasses(module, path)) {
      const definition = define(agentClass, module, path, exportName);
      const other = definitions.get(definition.kebab);
      if (other !== undefined && other.source !== null && other.agentClass !== agentClass) {
        throw invalidModule(module, `the agent "${definition.kebab}" is already defined in ${other.source}`);
      }
      definitions.set(definition.kebab, definition);
    }
  }
  return definitions;
}

/** Agents are named by their exports. A default export is named by its class, and is not another agent if it has a name besides. */
async function loadClasses(module: string, path: string): Promise<[string | null, AgentClass][]> {
  if (!existsSync(path)) throw invalidModule(module, `no such file (${path})`);
  let exports: Record<string, unknown>;
  try {
    exports = await load(path);
  } catch (cause) {
    throw invalidModule(module, `cannot be loaded: ${placeOf(cause, path)}${firstLines(cause)}`, cause);
  }
  const classes = Object.entries(exports).filter((entry): entry is [string, AgentClass] =>
    isAgentClass(entry[1]),
  );
  if (classes.length === 0) throw invalidModule(module, "exports no class that extends Agent");
  const named = classes.filter(([name]) => !UNNAMED.has(name));
  const unnamed = classes.filter(([, agentClass]) => !named.some(([, other]) => other === agentClass));
  return [...named, ...unnamed.map(([, agentClass]): [null, AgentClass] => [null, agentClass])];
}

/** `require` loads ES modules too; only a module with a top-level await needs `import`. */
async function load(path: string): Promise<Record<string, unknown>> {
  try {
    return createRequire(import.meta.url)(path) as Record<string, unknown>;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ERR_REQUIRE_ASYNC_MODULE") throw error;
    return (await import(pathToFileURL(path).href)) as Record<string, unknown>;
  }
}

function define(
  agentClass: AgentClass,
  module: string,
  path: string,
  exportName: string | null,
): AgentDefinition {
  try {
    return new AgentDefinition(agentClass, path, exportName);
  } catch (cause) {
    throw invalidModule(module, cause instanceof Error ? cause.message : String(cause), cause);
  }
}

function invalidModule(module: string, reason: string, cause?: unknown): ConfigError {
  return new ConfigError(`agents: ${module}: ${reason}`, cause === undefined ? undefined : { cause });
}

/** `lib/settings.ts:3:9: ` for an error that a module threw while it ran, or for an import of nothing. The message of a compiler has its place. */
function placeOf(error: unknown, path: string): string {
  const place = error instanceof Error ? (importPlace(error) ?? userPlace(error.stack ?? "")) : undefined;
  return place === undefined ? "" : `${relative(dirname(path), place)}: `;
}

/** `/home/ann/shop/agents.ts:3`: the import of a package or a file that does not exist. Its error has no frame of the importing file. */
function importPlace({ message, stack }: Error): string | undefined {
  const [, name, importer] =
    /^Cannot find (?:package|module) '([^']+)' imported from (\S+)/.exec(message) ??
    /^Cannot find module '([^']+)'\nRequire stack:\n- (\S+)/.exec(message) ??
    [];
  if (name === undefined || importer === undefined) return undefined;
  // Of a relative import, the message has the absolute path.
  const end = basename(name, extname(name));
  const path = importer.startsWith("file:") ? fileURLToPath(importer) : importer;
  if (!existsSync(path)) return userPlace(stack ?? "");
  const lines = readFileSync(path, "utf8").split("\n");
  const line = lines.findIndex((text) => /\b(?:import|from|require)\b/.test(text) && text.includes(end));
  return line === -1 ? path : `${path}:${line + 1}`;
}

/** The first lines of a compiler's message, joined. */
function firstLines(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text
    .split("\n")
    .filter((line) => line.trim() !== "")
    .slice(0, 2)
    .join(" ")
    .trim();
}
