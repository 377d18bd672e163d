/**
 * One worker of the server: its settings, its program, and the values of its bindings. The first worker answers requests; further ones are reached by bindings.
 *
 *   created ── load ─► loaded ── register ─► running
 *
 * All workers are created before one is loaded, so that bindings between them exist while modules load; what they lead to is looked up at each call.
 */
import { resolve } from "node:path";
import {
  bindWorker,
  currentObject,
  exportNameOf,
  type ObjectClass,
  type ObjectHost,
} from "../agents/index.ts";
import { type Config, ConfigError } from "../config/index.ts";
import type { OwnServer } from "../contracts/own-server.ts";
import type { Logger } from "../telemetry/logger.ts";
import { VERSION } from "../version.ts";
import { AiBinding } from "./ai/ai-binding.ts";
import { Assets } from "./assets/assets.ts";
import { checkCrons, type CronTrigger } from "./events/cron-object.ts";
import type { LoadedPrograms } from "./loader/loaded-programs.ts";
import { WorkerLoader } from "./loader/worker-loader.ts";
import { createEntrypointStub, handlerTarget } from "./program/entrypoint-stub.ts";
import type { BackgroundWork } from "./program/execution-context.ts";
import { addBindings, readVariables } from "./program/worker-environment.ts";
import { loadWorkerProgram } from "./program/worker-program.ts";
import { type ScheduledEvent, WorkerRuntime } from "./program/worker-runtime.ts";
import {
  findWranglerFile,
  readWranglerFile,
  type ServiceBinding,
  type WranglerSettings,
} from "./settings/wrangler-file.ts";
import { WorkflowBinding } from "./workflows/workflow-binding.ts";
import { createWorkflowClass, type WorkflowInstance } from "./workflows/workflow-object.ts";

export interface HostedWorkerParts {
  readonly config: Config;
  readonly logger: Logger;
  readonly objects: ObjectHost;
  readonly server: OwnServer;
  /** Variables of the process that programs may see. */
  readonly variables: Readonly<Record<string, string | undefined>>;
  readonly work: BackgroundWork;
  readonly programs: LoadedPrograms;
  /** Another worker of the server, by its name. */
  find(name: string): HostedWorker | undefined;
}

export interface HostedWorkerSettings {
  readonly entry: string;
  readonly wrangler?: string | undefined;
  readonly assets?: string | undefined;
  readonly vars: Readonly<Record<string, unknown>>;
}

/** Names of objects that are not the program's; no export can have them. */
const workflowName = (exportName: string) => `${exportName}:workflow`;

export class HostedWorker {
  readonly entry: string;
  readonly assets: Assets | null;
  readonly #parts: HostedWorkerParts;
  readonly #wrangler: WranglerSettings;
  /** Part of the names of its objects; empty for the first worker. */
  readonly #prefix: string;
  readonly #env: Record<string, unknown>;
  readonly #exports: Record<string, unknown> = {};
  readonly #ai: AiBinding;
  #runtime: WorkerRuntime | null = null;

  constructor(parts: HostedWorkerParts, settings: HostedWorkerSettings, isFirst: boolean) {
    const { workingFolder, file } = parts.config;
    this.#parts = parts;
    this.entry = resolve(workingFolder, settings.entry);
    this.#wrangler = readWranglerFile(
      settings.wrangler === undefined
        ? findWranglerFile(this.entry, workingFolder)
        : resolve(workingFolder, settings.wrangler),
      workingFolder,
    );
    this.#prefix = isFirst ? "" : requireName(this.#wrangler, settings.entry);
    checkCrons([...this.#wrangler.crons, ...this.#wrangler.workflows.flatMap(({ schedules }) => schedules)]);
    this.assets = openAssets(settings.assets, this.#wrangler, workingFolder);
    this.#env = readVariables({
      wrangler: this.#wrangler,
      environment: parts.variables,
      configured: settings.vars,
    });
    this.#ai = new AiBinding(parts.server, file.agents.ai, currentObject);
    bindWorker(
      {
        env: this.#env,
        exports: this.#exports,
        flags: this.#wrangler.flags,
        waitUntil: (promise) => parts.work.add(promise),
      },
      this.#prefix,
    );
    for (const [name, first] of this.#wrangler.renamed)
      parts.objects.rename(this.#exportName(name), this.#exportName(first));
  }

  /** Null: the wrangler file has none, and the worker is the first. */
  get name(): string | null {
    return this.#wrangler.name;
  }

  get runtime(): WorkerRuntime {
    if (this.#runtime === null)
      throw new Error(`the worker ${this.name ?? ""} is called while it is being loaded`);
    return this.#runtime;
  }

  /** Bindings of the wrangler file exist while the module loads; those of its exports follow. */
  async load(): Promise<void> {
    const { logger, work, config } = this.#parts;
    this.#bind([], []);
    const program = await loadWorkerProgram(this.entry, this.#wrangler, config.workingFolder, this.#prefix);
    const { assets } = this;
    this.#runtime = new WorkerRuntime(program, {
      env: this.#env,
      exports: this.#exports,
      work,
      assets,
      logger,
    });
    this.#bind(program.exports.objects.keys(), program.exports.workflows.keys());
  }

  /** Registers the program's classes, fills `ctx.exports`, and checks the bindings to all workers, which are loaded. */
  register(): void {
    const { runtime } = this;
    const { objects, workflows, entrypoints } = runtime.program.exports;
    const host = this.#parts.objects;
    for (const [name, value] of objects) {
      const exportName = this.#exportName(name);
      host.register(exportName, value as ObjectClass, this.#wrangler.updateDelayMs);
      this.#exports[name] = host.exported(exportName);
    }
    for (const [name, value] of workflows) {
      const WorkflowClass = value as new (ctx: object, env: object) => WorkflowInstance;
      host.register(
        workflowName(this.#exportName(name)),
        createWorkflowClass({ name, open: () => new WorkflowClass(runtime.createContext(), this.#env) }),
      );
      this.#exports[name] = this.workflow(name);
    }
    for (const name of entrypoints.keys()) this.#exports[name] = this.service(name);
    if (runtime.program.has("fetch")) this.#exports["default"] = this.service(null);
    this.#checkBindings();
  }

  /** Cron triggers, and the schedules of workflows: each due time of one creates an instance. */
  triggers(): CronTrigger[] {
    const { runtime } = this;
    const { crons, workflows } = this.#wrangler;
    const handled = runtime.program.has("scheduled") ? crons : [];
    return [
      ...handled.map((cron) => ({ cron, run: (event: ScheduledEvent) => runtime.scheduled(event) })),
      ...workflows.flatMap(({ className, schedules }) =>
        schedules.map((cron) => ({
          cron,
          run: (event: ScheduledEvent) => this.workflow(className).createScheduled(event),
        })),
      ),
    ];
  }

  namespace(className: string): object {
    return this.#parts.objects.namespace(this.#exportName(className));
  }

  workflow(className: string): WorkflowBinding {
    return new WorkflowBinding(this.#parts.objects.namespace(workflowName(this.#exportName(className))));
  }

  /** A stub of an entrypoint; null is the default export. */
  service(name: string | null, props: unknown = {}): object {
    return createEntrypointStub((given) => {
      const { runtime } = this;
      const entrypoint = runtime.program.entrypoint(name);
      const ctx = runtime.createContext(given);
      if (typeof entrypoint === "function") return new entrypoint(ctx, this.#env);
      return handlerTarget(entrypoint ?? {}, this.#env, ctx);
    }, props);
  }

  #exportName(name: string): string {
    return exportNameOf(this.#prefix, name);
  }

  #bind(objectNames: Iterable<string>, workflowNames: Iterable<string>): void {
    const { assets } = this;
    addBindings(this.#env, {
      wrangler: this.#wrangler,
      objectNames,
      workflowNames,
      object: (className, script) => this.#worker(script)?.namespace(className) ?? null,
      workflow: (className, script) => this.#worker(script)?.workflow(className) ?? null,
      service: ({ entrypoint, props }, script) => this.#worker(script)?.service(entrypoint, props) ?? null,
      ai: this.#ai,
      assets: assets === null ? null : { fetch: assets.fetch },
      loader: (binding) => new WorkerLoader(this.#parts.programs, `${this.#prefix}/${binding}`),
      version: VERSION,
    });
  }

  #worker(script: string | null): HostedWorker | undefined {
    return script === null ? this : this.#parts.find(script);
  }

  /** A binding to what a worker does not export would fail at its first use. */
  #checkBindings(): void {
    const { services, foreign } = this.#wrangler;
    const own: readonly (ServiceBinding & { readonly script: string | null })[] = services.map((service) => ({
      ...service,
      script: null,
    }));
    for (const { binding, entrypoint, script } of [...own, ...foreign.services]) {
      const worker = this.#worker(script);
      if (worker !== undefined && worker.runtime.program.entrypoint(entrypoint) === undefined)
        throw new ConfigError(
          `worker: the service binding ${binding} names the entrypoint ${entrypoint}, which the worker ${script ?? ""} does not export`,
        );
    }
    const classes = [
      ...foreign.objects.map((one) => ({ ...one, kind: "objects" as const })),
      ...foreign.workflows.map((one) => ({ ...one, kind: "workflows" as const })),
    ];
    for (const { binding, className, script, kind } of classes) {
      const worker = this.#worker(script);
      if (worker !== undefined && !worker.runtime.program.exports[kind].has(className))
        throw new ConfigError(
          `worker: the binding ${binding} names the class ${className}, which the worker ${script} does not export`,
        );
    }
  }
}

/** Letters, digits, hyphens and underscores, as the originals demand. */
const NAME = /^[A-Za-z0-9_-]+$/;

function requireName({ name }: WranglerSettings, entry: string): string {
  if (name === null || !NAME.test(name))
    throw new ConfigError(
      `worker: ${entry}: expected a wrangler file with a name of letters, digits, - and _, found ${name === null ? "none" : `"${name}"`}: others bind to the worker by its name`,
    );
  return name;
}

function openAssets(
  folder: string | undefined,
  wrangler: WranglerSettings,
  workingFolder: string,
): Assets | null {
  const directory = wrangler.assets?.directory;
  const path =
    folder !== undefined
      ? resolve(workingFolder, folder)
      : directory !== undefined
        ? resolve(wrangler.folder, directory)
        : null;
  if (path === null) return null;
  return new Assets(path, {
    html_handling: wrangler.assets?.html_handling ?? "auto-trailing-slash",
    not_found_handling: wrangler.assets?.not_found_handling ?? "none",
    run_worker_first: wrangler.assets?.run_worker_first ?? false,
  });
}
