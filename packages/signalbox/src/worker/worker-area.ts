/**
 * Composes the worker's area: loads the workers, and connects the first one's handlers to the listener.
 *
 * The order of a start: the programs are loaded before the agents' area starts, so that their classes are known when objects with due alarms wake; the
 * cron triggers are set after it.
 */
import { relative } from "node:path";
import { kebabCase } from "@signalbox/protocol";
import type { Duplex } from "node:stream";
import type { WebSocket } from "ws";
import type { Authenticator } from "../accounts/index.ts";
import type { ObjectHost } from "../agents/index.ts";
import type { AreaModule } from "../area-module.ts";
import { type Config, ConfigError } from "../config/index.ts";
import type { OwnServer } from "../contracts/own-server.ts";
import type { Clock } from "../core/clock.ts";
import { type SharedPlaces, STRANGERS } from "../core/shared-pool.ts";
import { ClientAddress } from "../engines/ip-address/index.ts";
import type { FallbackArea } from "../http/area.ts";
import type { Logger } from "../telemetry/logger.ts";
import { WorkerDoor } from "./door/worker-door.ts";
import { WorkerSockets } from "./door/worker-sockets.ts";
import { createCronClass, type CronObject } from "./events/cron-object.ts";
import { EventPaths } from "./events/event-paths.ts";
import { HostedWorker } from "./hosted-worker.ts";
import { LoadedPrograms } from "./loader/loaded-programs.ts";
import { BackgroundWork } from "./program/execution-context.ts";
import type { WorkerProgram } from "./program/worker-program.ts";

export interface WorkerParts {
  readonly config: Config;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly authenticator: Authenticator;
  /** Of requests and WebSockets, by account. */
  readonly places: SharedPlaces;
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

/** The name of an object that is not the program's; no export can have it. */
const CRONS = "signalbox:crons";

/** Loads the programs. Throws a `ConfigError` of one line if one cannot run. */
export async function createWorkerArea(parts: WorkerParts): Promise<WorkerArea> {
  const { config, logger } = parts;
  const { worker: settings, workers: further } = config.file.agents;
  if (settings === undefined) throw new ConfigError("agents.worker: expected a worker, found none");
  const work = new BackgroundWork(logger);
  const programs = new LoadedPrograms(config.file.agents.loader, logger);
  const byName = new Map<string, HostedWorker>();
  const workers = [settings, ...further].map((one, i) => {
    const worker = new HostedWorker(
      { ...parts, work, programs, find: (name: string) => byName.get(name) },
      one,
      i === 0,
    );
    if (worker.name === null) return worker;
    if (byName.has(worker.name))
      throw new ConfigError(`worker: ${one.entry}: another worker has the name "${worker.name}", too`);
    byName.set(worker.name, worker);
    return worker;
  });
  const [first] = workers;
  if (first === undefined) throw new ConfigError("agents.worker: expected a worker, found none");
  for (const worker of workers) await worker.load();
  const { assets, runtime } = first;
  const { program } = runtime;
  const unknown = Object.entries(config.file.webhooks.sources).find(
    ([, { object }]) => object !== undefined && !program.exports.objects.has(object),
  );
  if (unknown !== undefined)
    throw new ConfigError(
      `webhooks.sources.${unknown[0]}.object: expected a class that the worker exports, found "${unknown[1].object}"`,
    );
  for (const worker of workers) worker.register();
  const triggers = workers.flatMap((worker) => worker.triggers());
  parts.objects.register(CRONS, createCronClass({ logger, triggers }));
  const door = new WorkerDoor({
    logger,
    runtime,
    assets,
    place: parts.places.shareOf(STRANGERS),
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
  for (const worker of workers)
    logger.info(
      { worker: relative(config.workingFolder, worker.entry), ...describe(worker.runtime.program) },
      "worker loaded",
    );
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
      },
      async begin() {
        // An object without triggers would be a file for nothing.
        if (triggers.length === 0) return;
        const stub = parts.objects.namespace(CRONS).getByName("crons") as unknown as CronObject;
        await stub.begin();
      },
      async stop() {
        await work.finish(config.file.listener.gracePeriodMs);
        programs.close();
      },
    },
  };
}

function publicUrlOf({ file }: Config): URL | null {
  const { publicUrl } = file.listener;
  return publicUrl === undefined ? null : new URL(publicUrl);
}

function describe({ exports }: WorkerProgram): object {
  const names = (map: ReadonlyMap<string, unknown>) => [...map.keys()];
  return { objects: names(exports.objects), workflows: names(exports.workflows) };
}
