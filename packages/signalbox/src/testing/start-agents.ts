/**
 * Agents in a test: the service of `signalbox serve` in this process, with a clock that the test moves.
 *
 * 1. Nothing waits for time: schedules, alarms, queues and retries run in `advance`, and `idle` returns when no agent works.
 * 2. An error of an agent that the test has not received makes `idle`, `advance` or `close` fail, unless the test collects failures.
 * 3. `close` ends the service and removes what it stored, unless the test named the folder.
 */
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { SignalboxClient } from "@signalbox/client";
import type { AgentClass } from "../agents/index.ts";
import type { ConfigFileInput } from "../config/index.ts";
import { useAgentDates } from "./agent-dates.ts";
import { TestFolder } from "./data-folder.ts";
import { type AgentFailure, Failures } from "./failures.ts";
import { sendWebhook, type TestWebhook, type WebhookAnswer } from "./send-webhook.ts";
import { type AgentBench, TestAgent } from "./test-agent.ts";
import { TestClock } from "./test-clock.ts";
import type { TestConnection } from "./test-connection.ts";
import { TestService, type TestServiceOptions } from "./test-service.ts";

export interface TestOptions {
  /** Classes, and paths or URLs of files that export some. A path is relative to the working folder. */
  readonly agents?: readonly (AgentClass | string | URL)[];
  /** The entry of a program for the worker mode. One program per process. */
  readonly worker?: string | URL;
  /** The path of a configuration file, whose folder is then the working folder, or its content. Default: none, and no file is read. */
  readonly config?: ConfigFileInput | string;
  /** Variables that the agents see in `env`. Every webhook source has a secret without them. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Keeps what the agents store in this folder, on disk. Default: a folder in memory or a temporary one, which `close` removes. */
  readonly folder?: string;
  /** The time at the start. Default: the time of the system. */
  readonly now?: Date | number;
  /** `throw`: failures of agents that the test has not received fail it. `collect`: they are only in `takeFailures`. Default `throw`. */
  readonly failures?: "throw" | "collect";
  /** Writes the log of the service to standard error. Default false. */
  readonly printLogs?: boolean;
}

/** Starts the service with these agents, or with the file that exports them. */
export async function startAgents(options: TestOptions | string | URL): Promise<TestAgents> {
  const all: TestOptions =
    typeof options === "string" || options instanceof URL ? { agents: [options] } : options;
  return TestAgents.start(all);
}

export class TestAgents implements AsyncDisposable {
  /** Lines of the service's log, parsed. */
  readonly logs: readonly Readonly<Record<string, unknown>>[];
  readonly #options: TestServiceOptions;
  readonly #throwsFailures: boolean;
  readonly #connections = new Set<TestConnection<never>>();
  readonly #endDates = useAgentDates();
  #service: TestService;
  #closed: Promise<void> | null = null;

  private constructor(service: TestService, options: TestServiceOptions, throwsFailures: boolean) {
    this.#service = service;
    this.#options = options;
    this.#throwsFailures = throwsFailures;
    this.logs = options.logs;
  }

  static async start(options: TestOptions): Promise<TestAgents> {
    const agents = options.agents ?? [];
    const toPath = (given: string | URL) => resolve(given instanceof URL ? fileURLToPath(given) : given);
    const all: TestServiceOptions = {
      classes: agents.filter((one) => typeof one === "function"),
      modules: agents.filter((one) => typeof one !== "function").map((one) => toPath(one)),
      worker: options.worker === undefined ? undefined : toPath(options.worker),
      config: options.config,
      environment: options.environment ?? {},
      workingFolder: typeof options.config === "string" ? dirname(resolve(options.config)) : process.cwd(),
      folder: new TestFolder(options.folder),
      clock: new TestClock(Number(options.now ?? Date.now())),
      failures: new Failures(),
      logs: [],
      printsLogs: options.printLogs === true,
    };
    try {
      return new TestAgents(await TestService.start(all), all, options.failures !== "collect");
    } catch (error) {
      all.folder.remove();
      throw error;
    }
  }

  /** Address of the service, for clients of the gateway, of webhooks or of the agents. */
  get url(): string {
    return this.#service.url;
  }

  /** The root token of the service. */
  get token(): string {
    return this.#service.token;
  }

  /** A client of the service with all permissions: tags, gateways, deliveries, accounts. */
  get client(): SignalboxClient {
    return this.#service.client;
  }

  /** The time of the clock, in milliseconds. */
  get now(): number {
    return this.#options.clock.now();
  }

  /** An instance by its class, or by the name of the class; it is created by the first event. */
  get<Class extends AgentClass>(agent: Class, name?: string): TestAgent<InstanceType<Class>>;
  get<Agent = unknown>(agent: string, name?: string): TestAgent<Agent>;
  get(agent: AgentClass | string, name = "default"): TestAgent {
    return new TestAgent(this.#bench, typeof agent === "string" ? agent : agent.name, name);
  }

  /** Sends a signed webhook to the source over HTTP. The answer is what the provider would receive. */
  async webhook(source: string, webhook: TestWebhook = {}): Promise<WebhookAnswer> {
    return sendWebhook(this.#service, source, webhook, this.now);
  }

  /** Sends a request to the service, e.g. to the program of the worker mode. */
  async fetch(path: string, init?: RequestInit): Promise<Response> {
    return fetch(new URL(path, this.url), init);
  }

  /** Moves the clock, in milliseconds. What becomes due on the way runs at its time, one after the other. */
  async advance(ms: number): Promise<void> {
    await this.#options.clock.advance(ms, () => this.#service.settle());
    await this.idle();
  }

  /** Resolves when no agent works, nothing is due, and connections have received what was sent. */
  async idle(): Promise<void> {
    await this.#service.settle();
    await Promise.all([...this.#connections].map((connection) => connection.caughtUp()));
    await this.#service.settle();
    this.#throwFailures();
  }

  /** The failures of agents since the last call that the test has not received otherwise. */
  takeFailures(): AgentFailure[] {
    return this.#options.failures.take();
  }

  /** Stops the service in order, and starts it on the same data. Connections come back by themselves only if their client reconnects. */
  async restart(): Promise<void> {
    await this.#closeConnections();
    await this.#service.stop();
    await this.#startAgain();
  }

  /** Starts the service from the files as a kill at this moment would leave them. Work in progress is lost or runs again. */
  async crash(): Promise<void> {
    const { folder } = this.#options;
    const snapshot = folder.snapshot();
    await this.#closeConnections();
    await this.#service.stop();
    // The end of the interrupted turns is not the test's concern.
    this.#options.failures.take();
    folder.restore(snapshot);
    await this.#startAgain();
  }

  /** Ends the service. Fails if agents failed unnoticed. */
  close(): Promise<void> {
    return (this.#closed ??= this.#close());
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    try {
      await this.#closeConnections();
      await this.#service.stop();
    } finally {
      this.#endDates();
      this.#options.folder.remove();
    }
    this.#throwFailures();
  }

  async #startAgain(): Promise<void> {
    this.#options.clock.clear();
    this.#service = await TestService.start(this.#options);
  }

  async #closeConnections(): Promise<void> {
    await Promise.all([...this.#connections].map((connection) => connection[Symbol.asyncDispose]()));
  }

  #throwFailures(): void {
    if (this.#throwsFailures) this.#options.failures.throwUntaken();
  }

  get #bench(): AgentBench {
    const service = () => this.#service;
    const { clock, failures } = this.#options;
    return {
      get service() {
        return service();
      },
      clock,
      failures,
      connections: this.#connections,
    };
  }
}
