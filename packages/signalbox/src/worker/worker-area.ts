/**
 * Composes the worker's area: reads its settings, loads its program, builds its bindings, and connects handlers and objects.
 *
 * The order of a start: the program is loaded before the agents' area starts, so that its classes are known when objects with due alarms wake; the
 * cron triggers are set after it.
 */
import { relative, resolve } from "node:path";
import { kebabCase } from "@signalbox/protocol";
import type { Duplex } from "node:stream";
import type { WebSocket } from "ws";
import type { Authenticator } from "../accounts/index.ts";
import { bindWorker, currentObject, type ObjectClass, type ObjectHost } from "../agents/index.ts";
import type { AreaModule } from "../area-module.ts";
import { type Config, ConfigError } from "../config/index.ts";
import type { OwnServer } from "../contracts/own-server.ts";
import type { Clock } from "../core/clock.ts";
import { ClientAddress } from "../engines/ip-address/index.ts";
import type { FallbackArea } from "../http/area.ts";
import type { Logger } from "../telemetry/logger.ts";
import { VERSION } from "../version.ts";
import { AiBinding } from "./ai/ai-binding.ts";
import { Assets } from "./assets/assets.ts";
import { WorkerDoor } from "./door/worker-door.ts";
import { WorkerSockets } from "./door/worker-sockets.ts";
import { checkCrons, createCronClass, type CronObject, type CronTrigger } from "./events/cron-object.ts";
import { EventPaths } from "./events/event-paths.ts";
import { createEntrypointStub, handlerTarget } from "./program/entrypoint-stub.ts";
import { BackgroundWork } from "./program/execution-context.ts";
import { addBindings, readVariables } from "./program/worker-environment.ts";
import { loadWorkerProgram, type WorkerProgram } from "./program/worker-program.ts";
import { type ScheduledEvent, WorkerRuntime } from "./program/worker-runtime.ts";
import { findWranglerFile, readWranglerFile, type WranglerSettings } from "./settings/wrangler-file.ts";
import { WorkflowBinding } from "./workflows/workflow-binding.ts";
import { createWorkflowClass, type WorkflowInstance } from "./workflows/workflow-object.ts";

export interface WorkerParts {
  readonly config: Config;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly authenticator: Authenticator;
  readonly objects: ObjectHost;
  /** Joins the WebSocket of a program to the one of a client. */
  joinClient(webSocket: object, client: WebSocket, socket: Duplex): void;
  /** True for an agent of this package, by its name in URLs. */
  hasAgent(agent: string): boolean;
  /** Variables of the process that programs may see. */
  readonly variables: Readonly<Record<string, string | undefined>>;
  readonly server: OwnServer;
}

export interface WorkerArea {
  readonly fallback: FallbackArea;
  /** Starts after the agents' area, and stops before it. */
  readonly module: AreaModule;
}

/** Names of objects that are not the program's; no export can have them. */
const CRONS = "signalbox:crons";
const workflowName = (className: string) => `${className}:workflow`;

/** Loads the program. Throws a `ConfigError` of one line if it cannot run. */
export async function createWorkerArea(parts: WorkerParts): Promise<WorkerArea> {
  const { config, logger } = parts;
  const settings = config.file.agents.worker;
  if (settings === undefined) throw new ConfigError("agents.worker: expected a worker, found none");
  const entry = resolve(config.workingFolder, settings.entry);
  const wrangler = readWranglerFile(
    settings.wrangler === undefined
      ? findWranglerFile(entry, config.workingFolder)
      : resolve(config.workingFolder, settings.wrangler),
    config.workingFolder,
  );
  checkCrons([...wrangler.crons, ...wrangler.workflows.flatMap(({ schedules }) => schedules)]);
  const sources = Object.entries(config.file.webhooks.sources);
  const assets = openAssets(settings.assets, wrangler, config.workingFolder);
  const work = new BackgroundWork(logger);
  const env = readVariables({ wrangler, environment: parts.variables, configured: settings.vars });
  const exports: Record<string, unknown> = {};
  bindWorker({ env, exports, flags: wrangler.flags, waitUntil: (promise) => work.add(promise) });
  for (const [name, first] of wrangler.renamed) parts.objects.rename(name, first);
  const runtimeParts = { env, exports, work, assets, logger };
  const bind = new Bindings(parts, wrangler, assets, env);
  // Bindings of the wrangler file exist while the module loads; those of its exports follow.
  bind.addTo(env, null);
  const program = await loadWorkerProgram(entry, wrangler, config.workingFolder);
  const unknown = sources.find(
    ([, { object }]) => object !== undefined && !program.exports.objects.has(object),
  );
  if (unknown !== undefined)
    throw new ConfigError(
      `webhooks.sources.${unknown[0]}.object: expected a class that the worker exports, found "${unknown[1].object}"`,
    );
  const runtime = new WorkerRuntime(program, runtimeParts);
  bind.addTo(env, runtime);
  bind.register(exports, runtime);
  const triggers = [
    ...(program.has("scheduled") ? wrangler.crons : []).map((cron) => ({
      cron,
      run: (event: ScheduledEvent) => runtime.scheduled(event),
    })),
    ...bind.workflowTriggers(),
  ];
  parts.objects.register(CRONS, createCronClass({ logger, triggers }));
  const door = new WorkerDoor({
    logger,
    runtime,
    assets,
    publicUrl: publicUrlOf(config),
    clientAddress: new ClientAddress(config.file.listener.trustedProxies),
    maxBodyBytes: config.file.agents.maxBodyBytes,
    sockets: new WorkerSockets({
      maxMessageBytes: config.file.agents.maxMessageBytes,
      join: (webSocket, client, socket) => parts.joinClient(webSocket, client, socket),
    }),
    isNative: (agent) => parts.hasAgent(agent) && !parts.objects.replaces(agent),
    takenSegments: new Set(settings.webhooks ? ["webhooks"] : []),
    events: new EventPaths({
      authenticator: parts.authenticator,
      account: config.file.agents.ai.account,
      maxBodyBytes: config.file.agents.maxBodyBytes,
      runtime,
      now: () => parts.clock.now(),
    }),
  });
  logger.info({ worker: relative(config.workingFolder, entry), ...describe(program) }, "worker loaded");
  return {
    fallback: door,
    module: {
      mounts: [],
      routes: [],
      async start() {
        for (const name of program.exports.objects.keys())
          if (parts.hasAgent(kebabCase(name)) && !parts.objects.replaces(kebabCase(name)))
            throw new ConfigError(
              `worker: the class ${name} and the agent "${kebabCase(name)}" of this server have one name: rename one of them`,
            );
        // An object without triggers would be a file for nothing.
        if (triggers.length === 0) return;
        const stub = parts.objects.namespace(CRONS).getByName("crons") as unknown as CronObject;
        await stub.begin();
      },
      stop: () => work.finish(config.file.listener.gracePeriodMs),
    },
  };
}

/** The values of bindings, and the classes behind them. */
class Bindings {
  readonly #parts: WorkerParts;
  readonly #wrangler: WranglerSettings;
  readonly #assets: Assets | null;
  readonly #env: Readonly<Record<string, unknown>>;
  readonly #ai: AiBinding;

  constructor(
    parts: WorkerParts,
    wrangler: WranglerSettings,
    assets: Assets | null,
    env: Readonly<Record<string, unknown>>,
  ) {
    this.#parts = parts;
    this.#wrangler = wrangler;
    this.#assets = assets;
    this.#env = env;
    this.#ai = new AiBinding(parts.server, parts.config.file.agents.ai, currentObject);
  }

  /** `runtime` null: the program is not loaded yet. */
  addTo(env: Record<string, unknown>, runtime: WorkerRuntime | null): void {
    addBindings(env, {
      wrangler: this.#wrangler,
      objectNames: runtime?.program.exports.objects.keys() ?? [],
      workflowNames: runtime?.program.exports.workflows.keys() ?? [],
      object: (className) => this.#parts.objects.namespace(className),
      workflow: (className) => this.#workflow(className),
      service: (entrypoint) => (runtime === null ? {} : this.#service(runtime, entrypoint)),
      ai: this.#ai,
      assets: this.#assets === null ? null : { fetch: this.#assets.fetch },
      version: VERSION,
    });
  }

  /** Registers the program's classes, and fills `ctx.exports`. */
  register(exports: Record<string, unknown>, runtime: WorkerRuntime): void {
    const { objects, workflows, entrypoints } = runtime.program.exports;
    const host = this.#parts.objects;
    for (const [name, value] of objects) {
      host.register(name, value as ObjectClass);
      exports[name] = host.exported(name);
    }
    for (const [name, value] of workflows) {
      const WorkflowClass = value as new (ctx: object, env: object) => WorkflowInstance;
      host.register(
        workflowName(name),
        createWorkflowClass({ name, open: () => new WorkflowClass(runtime.createContext(), this.#env) }),
      );
      exports[name] = this.#workflow(name);
    }
    for (const name of entrypoints.keys()) exports[name] = this.#service(runtime, name);
    if (runtime.program.has("fetch")) exports["default"] = this.#service(runtime, null);
  }

  /** Each due time of a workflow's schedules creates an instance. */
  workflowTriggers(): CronTrigger[] {
    return this.#wrangler.workflows.flatMap(({ className, schedules }) =>
      schedules.map((cron) => ({
        cron,
        run: (event: ScheduledEvent) => this.#workflow(className).createScheduled(event),
      })),
    );
  }

  #workflow(className: string): WorkflowBinding {
    return new WorkflowBinding(this.#parts.objects.namespace(workflowName(className)));
  }

  #service(runtime: WorkerRuntime, name: string | null): object {
    const entrypoint = runtime.program.entrypoint(name);
    if (entrypoint === undefined)
      throw new ConfigError(
        `worker: a service binding names the entrypoint ${name}, which the worker does not export`,
      );
    return createEntrypointStub((props) => {
      const ctx = runtime.createContext(props);
      return typeof entrypoint === "function"
        ? new entrypoint(ctx, this.#env)
        : handlerTarget(entrypoint, this.#env, ctx);
    });
  }
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

function publicUrlOf({ file }: Config): URL | null {
  const { publicUrl } = file.listener;
  return publicUrl === undefined ? null : new URL(publicUrl);
}

function describe({ exports }: WorkerProgram): object {
  const names = (map: ReadonlyMap<string, unknown>) => [...map.keys()];
  return { objects: names(exports.objects), workflows: names(exports.workflows) };
}
