/** One instance of an agent in a test: its methods, events, state and tables. */
import type {
  AgentStub,
  ArgumentsOf,
  DeadLetter,
  MethodName,
  QueueItem,
  ResultOf,
  Schedule,
  StateOf,
} from "@signalbox/client";
import { kebabCase } from "@signalbox/protocol";
import type { DeliveryOutcome, WebhookEvent } from "../agents/index.ts";
import { DEFAULT_ACCOUNT } from "../core/default-account.ts";
import { ulid } from "../core/ulid.ts";
import type { Failures } from "./failures.ts";
import { TestConnection } from "./test-connection.ts";
import type { TestClock } from "./test-clock.ts";
import type { TestService } from "./test-service.ts";

/** What an instance needs of the test: the service changes when the test restarts it. */
export interface AgentBench {
  readonly service: TestService;
  readonly clock: TestClock;
  readonly failures: Failures;
  readonly connections: Set<TestConnection<never>>;
}

/** An event for `deliver`. What is absent is as for a generic webhook. */
export type TestEvent = Partial<Omit<WebhookEvent, "rawBody">>;

export class TestAgent<Agent = unknown> {
  /** Kebab-case name of the class. */
  readonly agent: string;
  readonly name: string;
  /** The agent's methods as functions: `inbox.stub.open("title")`. */
  readonly stub: AgentStub<Agent>;
  readonly #bench: AgentBench;

  constructor(bench: AgentBench, agent: string, name: string) {
    this.#bench = bench;
    this.agent = kebabCase(agent);
    this.name = name;
    this.stub = new Proxy({} as AgentStub<Agent>, {
      // A stub that is awaited is no promise.
      get: (_target, method) =>
        typeof method === "string" && method !== "then"
          ? (...args: unknown[]) => this.#call(method, args)
          : undefined,
    });
  }

  /** Calls a method that is marked with `@callable`. An error of the method is the cause of the rejection. */
  async call<Name extends MethodName<Agent>>(
    method: Name,
    ...args: ArgumentsOf<Agent, Name> & readonly unknown[]
  ): Promise<ResultOf<Agent, Name>> {
    return this.#call(method, args) as Promise<ResultOf<Agent, Name>>;
  }

  /** Gives the agent a verified event, without a source. Rejects with the error of the handler. */
  async deliver(event: TestEvent = {}): Promise<DeliveryOutcome["kind"]> {
    const { service, clock, failures } = this.#bench;
    const payload = event.payload ?? {};
    const whole: WebhookEvent = {
      id: ulid(clock.now()),
      source: "generic",
      type: "event",
      action: null,
      timestamp: new Date(clock.now()).toISOString(),
      headers: {},
      title: event.type ?? "event",
      description: null,
      url: null,
      actor: null,
      ...event,
      payload,
      rawBody: Buffer.from(JSON.stringify(payload)),
    };
    const target = { account: DEFAULT_ACCOUNT, agent: this.agent, name: this.name };
    try {
      return (await service.areas.agents.deliveries.deliver(target, whole)).kind;
    } catch (error) {
      failures.takeLast(this.agent, this.name);
      throw error;
    }
  }

  /** Sends a request to the agent's `onRequest`. */
  async fetch(path = "/", init: RequestInit = {}): Promise<Response> {
    const { service } = this.#bench;
    const headers = new Headers(init.headers);
    if (!headers.has("authorization")) headers.set("authorization", `Bearer ${service.token}`);
    const base = `${service.url}/agents/${this.agent}/${encodeURIComponent(this.name)}`;
    return fetch(base + (path.startsWith("/") ? path : `/${path}`), { ...init, headers });
  }

  /** Connects as an application does, and resolves when the state is known. */
  async connect(query: Readonly<Record<string, string>> = {}): Promise<TestConnection<Agent>> {
    const { service, connections } = this.#bench;
    const connection = new TestConnection<Agent>(
      { url: service.url, token: service.token, agent: this.agent, name: this.name, query },
      (closed) => connections.delete(closed as unknown as TestConnection<never>),
    );
    connections.add(connection as unknown as TestConnection<never>);
    return connection.open().ready();
  }

  /** The state as it is stored. */
  async state(): Promise<StateOf<Agent>> {
    return (await this.#management.get()).state as StateOf<Agent>;
  }

  /** Runs one read-only statement on the instance's database. */
  async sql<Row extends object = Readonly<Record<string, unknown>>>(text: string): Promise<readonly Row[]> {
    return (await this.#management.sql(text)).rows as unknown as readonly Row[];
  }

  /** The waiting queue items, oldest first. */
  queue(): Promise<QueueItem[]> {
    return this.#management.queue().all();
  }

  schedules(): Promise<Schedule[]> {
    return this.#management.schedules().all();
  }

  /** Queue items and scheduled calls that have failed in all of their attempts. */
  deadLetters(): Promise<DeadLetter[]> {
    return this.#management.deadLetters().all();
  }

  /** Returns dead letters to the queue, by default all (at most 10,000). Resolves to their number. */
  replayDeadLetters(ids?: readonly string[]): Promise<number> {
    return this.#management.replayDeadLetters(ids);
  }

  /** Deletes the instance and everything it stored. */
  async destroy(): Promise<void> {
    await this.#management.destroy();
  }

  get #management() {
    return this.#bench.service.client.account().agents.instance(this.agent, this.name);
  }

  async #call(method: string, args: readonly unknown[]): Promise<unknown> {
    const { service, failures } = this.#bench;
    try {
      return await service.client.callAgent({ agent: this.agent, name: this.name }, method, args);
    } catch (error) {
      const own = failures.takeLast(this.agent, this.name)?.error;
      if (own !== undefined && error instanceof Error) error.cause = own;
      throw error;
    }
  }
}
