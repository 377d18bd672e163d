/**
 * The worker's own code: its default export with the handlers, and its named exports by kind.
 *
 * The default export is an object with handlers, or a class that extends `WorkerEntrypoint` and is constructed for each event.
 */
import { existsSync } from "node:fs";
import { relative } from "node:path";
import { pathToFileURL } from "node:url";
import { exportKind, installWorkerGlobals, registerModuleHooks, urlFor } from "../../agents/index.ts";
import { ConfigError } from "../../config/index.ts";
import type { WranglerSettings } from "../settings/wrangler-file.ts";
import type { ExecutionContext } from "./execution-context.ts";
import { addFetchGlobals } from "./fetch-globals.ts";
import { addRuntimeGlobals } from "./runtime-globals.ts";
import { PLATFORM_MODULES } from "./platform-modules.ts";

export type Handler = "fetch" | "scheduled" | "email";
type Environment = Readonly<Record<string, unknown>>;
type EntrypointClass = new (ctx: ExecutionContext, env: Environment) => Record<string, unknown>;
/** An entrypoint that is a plain object, as the default export mostly is: its functions are handlers. */
type Handlers = Readonly<Record<string, unknown>>;
export type Entrypoint = EntrypointClass | Handlers;

export interface WorkerExports {
  readonly objects: ReadonlyMap<string, unknown>;
  readonly workflows: ReadonlyMap<string, unknown>;
  readonly entrypoints: ReadonlyMap<string, Entrypoint>;
}

export class WorkerProgram {
  readonly exports: WorkerExports;
  readonly #default: unknown;

  /** `objectNames`: classes that the wrangler file binds. They are objects also if they extend nothing, as programs before `DurableObject` do. */
  constructor(module: Readonly<Record<string, unknown>>, objectNames: ReadonlySet<string> = new Set()) {
    const { default: main, ...named } = module;
    this.#default = main;
    const kindOf = (name: string, value: unknown) => {
      const kind = exportKind(value);
      if (kind !== "other") return kind;
      if (typeof value === "function") return objectNames.has(name) ? "object" : kind;
      return isHandlers(value) ? "entrypoint" : kind;
    };
    const ofKind = (kind: string) =>
      new Map(Object.entries(named).filter(([name, value]) => kindOf(name, value) === kind));
    this.exports = {
      objects: ofKind("object"),
      workflows: ofKind("workflow"),
      entrypoints: ofKind("entrypoint") as ReadonlyMap<string, Entrypoint>,
    };
  }

  /** Null is the default export. Undefined: there is no such entrypoint. */
  entrypoint(name: string | null): Entrypoint | undefined {
    return name === null ? ((this.#default ?? {}) as Entrypoint) : this.exports.entrypoints.get(name);
  }

  get defaultEntrypoint(): EntrypointClass | null {
    return exportKind(this.#default) === "entrypoint" ? (this.#default as EntrypointClass) : null;
  }

  has(handler: Handler): boolean {
    const holder = this.defaultEntrypoint?.prototype ?? this.#default;
    return typeof (holder as Record<string, unknown> | null | undefined)?.[handler] === "function";
  }

  /** Calls a handler of the default export with one argument, as the class or the object declares it. */
  async run(handler: Handler, event: unknown, env: Environment, ctx: ExecutionContext): Promise<unknown> {
    const entrypoint = this.defaultEntrypoint;
    const holder =
      entrypoint === null ? (this.#default as Record<string, unknown>) : new entrypoint(ctx, env);
    const method = holder[handler];
    if (typeof method !== "function") throw new TypeError(`the worker has no ${handler} handler`);
    return (await Reflect.apply(
      method,
      holder,
      entrypoint === null ? [event, env, ctx] : [event],
    )) as unknown;
  }
}

/** `worker`: the name of a further worker, empty for the first one. Every error is one line that names the file. */
export async function loadWorkerProgram(
  path: string,
  wrangler: WranglerSettings,
  workingFolder: string,
  worker: string,
): Promise<WorkerProgram> {
  const name = relative(workingFolder, path);
  if (!existsSync(path)) throw new ConfigError(`worker: ${name}: no such file (${path})`);
  const { define, folder, rules } = wrangler;
  await registerModuleHooks({ platform: PLATFORM_MODULES, define, folder, rules }, worker);
  // All workers of a server have the same globals.
  if (worker === "") {
    installWorkerGlobals();
    addRuntimeGlobals(wrangler.flags);
    addFetchGlobals();
  }
  let module: Record<string, unknown>;
  try {
    module = (await import(urlFor(worker, pathToFileURL(path).href))) as Record<string, unknown>;
  } catch (cause) {
    throw new ConfigError(`worker: ${name}: cannot be loaded: ${reasonOf(cause)}`, { cause });
  }
  const program = new WorkerProgram(module, objectNamesOf(wrangler));
  const { objects, workflows, entrypoints } = program.exports;
  if (
    !HANDLERS.some((handler) => program.has(handler)) &&
    objects.size + workflows.size + entrypoints.size === 0
  )
    throw new ConfigError(
      `worker: ${name}: exports neither a handler (export default { fetch }) nor a class that extends DurableObject, WorkflowEntrypoint or WorkerEntrypoint`,
    );
  checkBindings(wrangler, program.exports, name);
  return program;
}

const HANDLERS: readonly Handler[] = ["fetch", "scheduled", "email"];

function isHandlers(value: unknown): boolean {
  return (
    typeof value === "object" &&
    value !== null &&
    HANDLERS.some((handler) => typeof (value as Record<string, unknown>)[handler] === "function")
  );
}

function objectNamesOf({ objects, declared }: WranglerSettings): ReadonlySet<string> {
  return new Set([...objects.map(({ className }) => className), ...declared.objects]);
}

/** A binding to a class that the file does not export would fail at its first use. */
function checkBindings(
  wrangler: WranglerSettings,
  { objects, workflows }: WorkerExports,
  name: string,
): void {
  const missing =
    wrangler.objects.find(({ className }) => !objects.has(className)) ??
    wrangler.workflows.find(({ className }) => !workflows.has(className));
  if (missing !== undefined)
    throw new ConfigError(
      `worker: ${name}: does not export the class ${missing.className}, which the binding ${missing.binding} of the wrangler file names`,
    );
  const undeclared =
    wrangler.declared.objects.find((className) => !objects.has(className)) ??
    wrangler.declared.workflows.find((className) => !workflows.has(className));
  if (undeclared !== undefined)
    throw new ConfigError(
      `worker: ${name}: does not export the class ${undeclared}, which exports of the wrangler file declares`,
    );
  const former = wrangler.former.find((className) => objects.has(className));
  if (former !== undefined)
    throw new ConfigError(
      `worker: ${name}: exports the class ${former}, which exports of the wrangler file declares as deleted, renamed or transferred`,
    );
}

/** The first lines of a compiler's or loader's message, joined. */
function reasonOf(cause: unknown): string {
  const text =
    cause instanceof Error
      ? `${cause.name === "Error" ? "" : `${cause.name}: `}${cause.message}`
      : String(cause);
  return text
    .split("\n")
    .filter((line) => line.trim() !== "")
    .slice(0, 2)
    .join(" ")
    .trim();
}
