/** The service of a test: the one of `signalbox serve`, in this process, on a free port and with the test's clock. */
import { setImmediate as nextIteration, setTimeout as sleep } from "node:timers/promises";
import { resolve } from "node:path";
import { SignalboxClient } from "@signalbox/client";
import type { AgentClass } from "../agents/index.ts";
import { type Config, type ConfigFileInput, loadConfig } from "../config/index.ts";
import { awakeSignal } from "../core/awake-time.ts";
import { checkConfigFile } from "../config/read-config-file.ts";
import { type Service, startService } from "../service.ts";
import type { Areas } from "../service/areas.ts";
import { createLogger } from "../telemetry/logger.ts";
import { createSources, type Source } from "../webhooks/index.ts";
import type { TestFolder } from "./data-folder.ts";
import type { Failures } from "./failures.ts";
import type { TestClock } from "./test-clock.ts";

export interface TestServiceOptions {
  readonly classes: readonly AgentClass[];
  readonly modules: readonly string[];
  readonly worker: string | undefined;
  readonly config: ConfigFileInput | string | undefined;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly workingFolder: string;
  readonly folder: TestFolder;
  readonly clock: TestClock;
  readonly failures: Failures;
  readonly logs: Record<string, unknown>[];
  readonly printsLogs: boolean;
}

/** A secret in the form of Standard Webhooks, which is a valid secret of every other scheme. */
const WEBHOOK_SECRET = `whsec_${Buffer.from("the webhook secret of tests").toString("base64")}`;
const ROOT_TOKEN = "root-token-of-the-tests";
/** The journal of a test is short, and may be in memory. */
const JOURNAL_BYTES = 1024 * 1024;
/** How long the agents may work before a test is told that they do not come to rest. */
const MAX_BUSY_MS = 15_000;

export class TestService {
  readonly client: SignalboxClient;
  readonly url: string;
  readonly token = ROOT_TOKEN;
  /** The webhook sources by name, with their secrets. */
  readonly sources: ReadonlyMap<string, Source>;
  readonly areas: Areas;
  readonly #service: Service;
  readonly #clock: TestClock;

  private constructor(service: Service, areas: Areas, clock: TestClock, config: Config) {
    this.sources = createSources(config.file.webhooks, config.environment);
    this.#service = service;
    this.#clock = clock;
    this.areas = areas;
    this.url = service.url;
    // A test wants the first answer; the agents' own time limits apply.
    this.client = new SignalboxClient({
      url: service.url,
      token: ROOT_TOKEN,
      maxAttempts: 1,
      timeoutMs: 0,
    });
  }

  static async start(options: TestServiceOptions): Promise<TestService> {
    const { clock, classes, logs, failures } = options;
    const config = await loadTestConfig(options);
    let areas: Areas | undefined;
    const service = await startService({
      config,
      logger: createLogger({
        level: "debug",
        isPretty: false,
        observe: failures.observe,
        destination: {
          write: (line) => {
            logs.push(JSON.parse(line) as Record<string, unknown>);
            if (options.printsLogs) process.stderr.write(line);
          },
        },
      }),
      clock,
      embedding: { agents: classes, onStart: (started) => (areas = started) },
      onFatal: (error) => {
        throw error;
      },
    });
    if (areas === undefined) throw new Error("the service has no areas");
    return new TestService(service, areas, clock, config);
  }

  /** Resolves when no agent works and nothing is due. */
  async settle(): Promise<void> {
    const limit = awakeSignal(MAX_BUSY_MS);
    // Twice in a row: what a turn has sent may start another one in the next iteration of the event loop.
    for (let quiet = 0; quiet < 2;) {
      await nextIteration();
      const isQuiet = this.areas.agents.isQuiet && !this.#clock.hasDue;
      quiet = isQuiet ? quiet + 1 : 0;
      if (isQuiet) continue;
      if (limit.aborted) throw new Error(`the agents are still busy after ${MAX_BUSY_MS / 1000} s`);
      await sleep(1);
    }
  }

  stop(): Promise<void> {
    return this.#service.stop("urgently");
  }
}

async function loadTestConfig(options: TestServiceOptions): Promise<Config> {
  const { config, folder, workingFolder, modules, worker } = options;
  const flags = {
    port: "0",
    dataDir: folder.path,
    agents: modules,
    ...(typeof config === "string" ? { config: resolve(config) } : {}),
    ...(worker === undefined ? {} : { worker: [worker], agentsAccess: "worker" }),
  };
  // Only a named file is read: a test must not depend on what happens to be in the folder.
  const isNamed = typeof config === "string";
  const base = await loadConfig(
    flags,
    { SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN },
    isNamed ? workingFolder : folder.path,
  );
  const given = isNamed ? base.file : checkConfigFile(config ?? {}, "the configuration of the test");
  const { modules: named, worker: program, access } = base.file.agents;
  const agents = {
    ...given.agents,
    journalFileBytes: Math.min(given.agents.journalFileBytes, JOURNAL_BYTES),
    modules: isNamed ? named : [...given.agents.modules, ...named],
    ...(program === undefined ? {} : { worker: program, access }),
  };
  const file = { ...given, agents };
  return {
    ...base,
    admin: null,
    workingFolder,
    file,
    environment: { ...webhookSecrets(file), ...options.environment },
  };
}

/** Every source can be used whose secret may be any text. */
function webhookSecrets({ webhooks }: Config["file"]): Record<string, string> {
  const usable = [...createSources(webhooks, {}).values()].filter(({ scheme }) => {
    try {
      return scheme.toKey(WEBHOOK_SECRET) !== undefined;
    } catch {
      // For example a public key (Discord, SendGrid), or a name with a password.
      return false;
    }
  });
  return Object.fromEntries(usable.map(({ secretVariable }) => [secretVariable, WEBHOOK_SECRET]));
}
