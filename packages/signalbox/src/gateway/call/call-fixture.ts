/** One call between a real client and a real provider, both on loopback. The test makes the moves of both, and sees what each of them sees. */
import { once } from "node:events";
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { SignalboxError } from "@signalbox/protocol";
import { Registry } from "prom-client";
import { systemClock } from "../../core/clock.ts";
import type { CallRecord } from "../../engines/call-log/index.ts";
import { type HttpRequest, type HttpResponse, MemoryBudget } from "../../engines/http-server/index.ts";
import { toOrigin, UpstreamClient } from "../../engines/relay/index.ts";
import { CallAccount } from "../limits/call-account.ts";
import { Grant } from "../limits/grant.ts";
import { Refusal } from "../limits/limit-refusal.ts";
import { PriceTable } from "../limits/price-table.ts";
import { GatewayMetrics } from "../metrics.ts";
import { Circuits } from "../reliability/circuits.ts";
import { TargetLatencies } from "../reliability/target-latencies.ts";
import type { AttemptPolicy } from "../step/attempt-policy.ts";
import type { Step } from "../step/step.ts";
import type { CallParts, CallStart, PlannedCall } from "./call-start.ts";

/** Longer than a test takes: what a test does not cause does not happen. */
const NEVER_MS = 3_600_000;
export const REFUSED = new SignalboxError("gateway_rate_limited");
/** An event with content, which releases an answer that is examined. */
export const EVENT = 'data: {"choices":[{"delta":{"content":"x"}}]}\n\n';

/** What the provider has received, and how it may answer. */
export class ProviderExchange {
  isOpen = true;
  /** The target of the request. */
  readonly url: string;
  readonly #response: ServerResponse;

  constructor(url: string, response: ServerResponse) {
    this.url = url;
    this.#response = response;
    response.on("close", () => (this.isOpen = false));
  }

  /** The head of a stream, and its first event. */
  begin(): void {
    this.#response.writeHead(200, { "content-type": "text/event-stream" });
    this.#response.write(EVENT);
  }

  end(): void {
    this.#response.end(this.#response.headersSent ? "data: [DONE]\n\n" : undefined);
  }

  answer(status: number, body: unknown, headers: Record<string, string> = {}): void {
    this.#response.writeHead(status, { "content-type": "application/json", ...headers });
    this.#response.end(JSON.stringify(body));
  }

  /** The head alone. */
  writeHead(headers: Record<string, string>): void {
    this.#response.writeHead(200, headers);
    this.#response.flushHeaders();
  }

  write(text: string): void {
    this.#response.write(text);
  }

  breakOff(): void {
    this.#response.destroy();
  }
}

/** What the client of a call sees. */
export class ClientView {
  status: number | null = null;
  headers: IncomingMessage["headers"] = {};
  text = "";
  state: "open" | "complete" | "broken" = "open";
  readonly #request: ReturnType<typeof request>;

  constructor(url: string) {
    this.#request = request(url, { agent: false }, (response) => {
      this.status = response.statusCode ?? null;
      this.headers = response.headers;
      response.setEncoding("utf8");
      response.on("data", (text: string) => (this.text += text));
      response.on("end", () => (this.state = "complete"));
      response.on("error", () => (this.state = "broken"));
    });
    this.#request.on("error", () => (this.state = "broken"));
    this.#request.end();
  }

  leave(): void {
    this.#request.destroy();
  }
}

export class Loopback {
  /** In the order in which they arrived at the provider. */
  readonly exchanges: ProviderExchange[] = [];
  readonly rows: CallRecord[] = [];
  readonly parts: CallParts;
  readonly client = new UpstreamClient({
    connectTimeoutMs: NEVER_MS,
    firstByteTimeoutMs: NEVER_MS,
    stallTimeoutMs: NEVER_MS,
    idleTimeoutMs: NEVER_MS,
  });
  readonly #registry = new Registry();
  readonly #memory = new MemoryBudget({ maxBytes: 2 ** 24, stallMs: NEVER_MS });
  readonly #provider: Server;
  readonly #gateway: Server;
  #onRequest: (request: IncomingMessage, response: ServerResponse) => void = () => undefined;

  constructor() {
    this.#provider = createServer((incoming, response) => {
      incoming.resume().on("error", () => response.destroy());
      this.exchanges.push(new ProviderExchange(incoming.url ?? "", response));
    }).on("error", fail);
    this.#gateway = createServer((incoming, response) => this.#onRequest(incoming, response)).on(
      "error",
      fail,
    );
    this.parts = {
      clock: systemClock,
      client: this.client,
      callLog: {
        hasRoom: true,
        whenRoom: () => Promise.resolve(),
        record: (row) => void this.rows.push(row),
      },
      gateways: { find: () => GATEWAY },
      metrics: new GatewayMetrics(this.#registry, () => ({ bytes: 0, bodiesRemoved: 0, rowsRemoved: 0 })),
      prices: new PriceTable(),
      payloadBytes: 1024,
      circuits: new Circuits(systemClock),
      latencies: new TargetLatencies(),
      tracing: { current: null },
      alertFeed: { current: null },
    };
  }

  async open(): Promise<void> {
    this.#provider.listen(0, "127.0.0.1");
    this.#gateway.listen(0, "127.0.0.1");
    await Promise.all([once(this.#provider, "listening"), once(this.#gateway, "listening")]);
  }

  async close(): Promise<void> {
    this.client.close();
    for (const server of [this.#provider, this.#gateway]) {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    }
  }

  get openExchanges(): number {
    return this.exchanges.filter(({ isOpen }) => isOpen).length;
  }

  /** The exchange that arrived last. */
  get last(): ProviderExchange {
    const exchange = this.exchanges.at(-1);
    if (exchange === undefined) throw new Error("nothing has arrived at the provider");
    return exchange;
  }

  /** Attempts after the first, and steps after the first. */
  async retries(): Promise<number> {
    const { values = [] } =
      (await this.#registry.getSingleMetric("signalbox_gateway_retries_total")?.get()) ?? {};
    return values.reduce((sum, { value }) => sum + value, 0);
  }

  step(policy: Partial<AttemptPolicy> = {}, port = portOf(this.#provider)): Step {
    return {
      provider: { slug: "openai", modelInPath: () => null, answer: undefined },
      path: "chat/completions",
      requestType: "chat",
      model: "m",
      maxOutputTokens: 10,
      choices: 1,
      tier: "",
      upstream: {
        origin: toOrigin(new URL(`http://127.0.0.1:${port}`), true),
        method: "POST",
        target: "/chat/completions",
        headers: ["content-type", "application/json"],
        body: { kind: "whole", bytes: Buffer.from('{"model":"m","messages":[]}') },
      },
      keys: null,
      hasOwnKey: true,
      keyScope: "",
      policy: { ...PLAIN_POLICY, ...policy },
      translation: null,
      filter: null,
    } as unknown as Step;
  }

  /** A client's request that has arrived, with steps of the test; `see` is what its client sees. */
  async arrive(steps: readonly Step[]): Promise<{ readonly planned: PlannedCall; readonly see: ClientView }> {
    const arrived = new Promise<[IncomingMessage, ServerResponse]>((resolve) => {
      this.#onRequest = (incoming, response) => resolve([incoming, response]);
    });
    const see = new ClientView(`http://127.0.0.1:${portOf(this.#gateway)}`);
    const [incoming, response] = await arrived;
    const planned = {
      request: incoming as unknown as HttpRequest,
      response: response as unknown as HttpResponse,
      context: { id: "r", errorDialect: null },
      gateway: GATEWAY,
      caller: { token: null, tokenId: null },
      memory: this.#memory.shareOf("default"),
      startedAt: performance.now(),
      options: {},
      steps,
      showsStep: false,
    } as unknown as PlannedCall;
    return { planned, see };
  }
}

/** A limit that nodes share: it answers when the test says so. */
export class LateLimit {
  /** Grants that are not over. */
  held = 0;
  #answer: (taken: Grant | Refusal) => void = () => undefined;
  readonly #asked = new Promise<Grant | Refusal>((resolve) => (this.#answer = resolve));

  /** Called when a reservation is written. */
  readonly writing: (() => void)[] = [];

  /** `number`: of a record that is not written yet. */
  grant(number = 0): void {
    this.held += 1;
    this.#answer(new Grant({ end: () => (this.held -= 1) }, [], number));
  }

  refuse(error: SignalboxError): void {
    this.#answer(Refusal.unchecked(error));
  }

  /** The account of a call under this limit alone. */
  createAccount(prices: PriceTable): CallAccount {
    const rules = {
      hasConditions: false,
      needsTokens: true,
      limitsCostOf: () => false,
      reserve: () => this.#asked,
      whenWritten: (task: () => void) => this.writing.push(task),
      settle: (reservation: Grant | null) => reservation?.release(),
      remaining: () => null,
    };
    const pricing = { prices, own: undefined, custom: undefined, unknownPrice: "allow" };
    return new CallAccount({ rules, pricing } as never);
  }
}

export function startOf(planned: PlannedCall, account: CallStart["account"] = null): CallStart {
  return { ...planned, id: "c", createdAt: 0, cacheStatus: null, logDetail: "row", account };
}

const GATEWAY = {
  accountId: "default",
  id: "g",
  cacheGeneration: 0,
  settings: {
    spend_limits: null,
    rate_limiting_limit: null,
    cache_ttl: null,
    collect_logs: true,
    guardrail_rules: null,
    dlp: null,
    guardrails: null,
  },
} as unknown as CallStart["gateway"];

const PLAIN_POLICY: AttemptPolicy = {
  requestTimeoutMs: null,
  maxAttempts: 1,
  retryDelayMs: 0,
  backoff: "constant",
  maxRetryWaitMs: NEVER_MS,
  firstTokenTimeoutMs: null,
  stallTimeoutMs: null,
  holdsResponse: false,
  fallbackOn: null,
  hedgeAfterMs: null,
  weight: 1,
};

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}

function fail(error: Error): never {
  throw error;
}
