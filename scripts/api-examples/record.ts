/**
 * Runs the examples of the management interface, in an order in which each finds what it needs, against a service of its own, and records what is sent
 * and answered. Ids and times are replaced by fixed ones, so that a second record differs only where the interface does.
 */
import { createHmac } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { SignalboxApiError, SignalboxClient } from "@signalbox/client";
import { type ConfigFileInput, loadConfig } from "../../packages/signalbox/src/config/index.ts";
import { checkConfigFile } from "../../packages/signalbox/src/config/read-config-file.ts";
import type { OperationExample } from "../../packages/signalbox/src/http/operation-examples.ts";
import { startService } from "../../packages/signalbox/src/service.ts";
import { createLogger } from "../../packages/signalbox/src/telemetry/logger.ts";
import type { OpenApi } from "../support/api-pages.ts";
import { ACCOUNTS, ALERTS, SERVICE } from "./accounts.ts";
import { AGENTS, QUEUED } from "./agents.ts";
import { CALLS, CREDIT, GATEWAYS, GUARDRAILS, LAST, MONEY, PROVIDERS, ROUTES } from "./gateway.ts";
import { Names } from "./names.ts";
import { type Ids, type Scope, type Step, textOf } from "./step.ts";
import { TAGS } from "./tags.ts";
import { EVENTS, ISSUES, LATE, LISTENERS, WEBHOOK_ROUTES, WEBHOOKS } from "./webhooks.ts";

const SECRET = "a-secret-of-the-examples";
const ROOT_TOKEN = "root-token-of-the-examples";

interface Sent {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly body: unknown;
  readonly status: number;
  readonly contentType: string;
  readonly answer: string;
}

/** By operation, such as `GET /accounts`. */
export async function recordExamples(): Promise<Record<string, OperationExample>> {
  return withService(async (url) => new Story(url, Object.keys((await describe(url)).paths)).tell());
}

/** The description of the interface, with the examples that the source has. */
export async function readOpenApi(): Promise<OpenApi> {
  return withService(describe);
}

async function describe(url: string): Promise<OpenApi> {
  const response = await fetch(`${url}/openapi.json`, { headers: { authorization: `Bearer ${ROOT_TOKEN}` } });
  return (await response.json()) as OpenApi;
}

async function withService<Result>(use: (url: string) => Promise<Result>): Promise<Result> {
  const dataDir = mkdtempSync(join(tmpdir(), "signalbox-examples-"));
  const environment = {
    SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN,
    GITHUB_WEBHOOK_SECRET: SECRET,
    SHOP_WEBHOOK_SECRET: SECRET,
  };
  const config = await loadConfig({ port: "0", dataDir }, environment, dataDir);
  const file: ConfigFileInput = {
    agents: { modules: [join(import.meta.dirname, "ticket-agent.ts")] },
    webhooks: {
      // Of the one delivery that is to be late. All others are to be in time, on a busy machine too.
      answerWithinMs: 3000,
      sources: {
        github: { agent: "ticket-agent" },
        shop: { scheme: "generic", secretVariable: "SHOP_WEBHOOK_SECRET" },
      },
    },
  };
  const service = await startService({
    config: { ...config, file: checkConfigFile(file, "the examples") },
    logger: createLogger({ level: "silent", isPretty: false }),
    onFatal: (error) => {
      throw error;
    },
  });
  try {
    return await use(service.url);
  } finally {
    await service.stop();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

class Story {
  readonly #url: string;
  readonly #templates: readonly string[];
  readonly #names = new Names();
  readonly #examples: Record<string, OperationExample> = {};
  readonly #client: SignalboxClient;
  /** What the present step has sent. */
  #sent: Sent[] = [];
  /** Ends streams that a step has begun: the service would wait for them when it stops. */
  #step = new AbortController();
  #ids: Partial<Ids> = {};

  constructor(url: string, templates: readonly string[]) {
    this.#url = url;
    this.#templates = templates;
    this.#client = new SignalboxClient({
      url,
      token: ROOT_TOKEN,
      fetch: async (input, init) => {
        const signals = [this.#step.signal, ...(init?.signal ? [init.signal] : [])];
        const response = await fetch(input, { ...init, signal: AbortSignal.any(signals) });
        this.#sent.push(
          await readExchange(input instanceof Request ? input.url : input.toString(), init, response.clone()),
        );
        return response;
      },
    });
  }

  async tell(): Promise<Record<string, OperationExample>> {
    const account = this.#client.account();
    await this.#run([...GATEWAYS, ...TAGS, ...ACCOUNTS, ...ALERTS, ...PROVIDERS, ...MONEY]);
    const prepaid = { limitType: "cost", limit: 100, window: null } as const;
    await account.gateways.update("shop", { spend_limits: { rules: [{ id: "prepaid", ...prepaid }] } });
    await account.tokens.update(this.#ids.tokenId ?? "", { budgets: [{ limit: 100, window: null }] });
    await this.#run([...CREDIT, ...ROUTES, ...GUARDRAILS]);
    await this.#call();
    await until(async () => (await account.logs("shop").list().page()).items.length > 0);
    await this.#run([...CALLS, ...WEBHOOKS]);

    await this.#send("github", "acme/billing", "ticket.opened");
    await until(async () => {
      const letters = account.agents.instance("ticket-agent", "acme-billing").deadLetters();
      return (await letters.all()).length === 2;
    });
    await this.#run(AGENTS);
    await this.#send("github", "acme/later", "ticket.opened");
    const [item] = await account.agents.instance("ticket-agent", "acme-later").queue().all();
    this.#ids = { ...this.#ids, itemId: item?.id ?? "" };
    await this.#run(QUEUED);

    await this.#run(WEBHOOK_ROUTES);
    await this.#send("shop", "acme", "ticket.opened");
    await account.webhooks.routing.putRoute("shop", "later", {
      to: { agent: "ticket-agent" },
      delay: 3_600_000,
    });
    await account.webhooks.routing.putRoute("shop", "failing", {
      to: { agent: "ticket-agent" },
      retry: { strategy: "linear", intervalMs: 1000, count: 0 },
    });
    await this.#send("shop", "acme", "ticket.broken");
    const { routing } = account.webhooks;
    await until(async () => (await routing.issues({ route: "failing" }).all()).length > 0);
    await until(
      async () => (await routing.events({ route: "tickets", state: "delivered" }).all()).length > 0,
    );
    const [waiting] = await routing.events({ route: "later" }).all();
    const [delivery] = await account.webhooks.deliveries({ source: "shop" }).all();
    this.#ids = { ...this.#ids, waitingEventId: waiting?.id ?? "", deliveryId: delivery?.id ?? "" };
    await this.#run([...EVENTS, ...LISTENERS.slice(0, 1)]);
    await this.#send("shop", "acme", "ticket.opened");
    await this.#run([...LISTENERS.slice(1), ...ISSUES]);
    await this.#send("github", "acme/slow", "ticket.slow");
    await this.#run([...LATE, ...SERVICE, ...LAST]);
    return this.#examples;
  }

  async #run(steps: readonly Step[]): Promise<void> {
    for (const one of steps) {
      this.#sent = [];
      const scope = { client: this.#client, account: this.#client.account(), ...this.#ids } as Scope;
      let result: unknown;
      try {
        result = await one.line(scope);
        if (one.refused !== null) throw new Error(`${textOf(one)}: not refused`);
      } catch (error) {
        const isExpected = error instanceof SignalboxApiError && error.status === one.refused?.status;
        if (!isExpected) throw new Error(`${textOf(one)} failed`, { cause: error });
      }
      if (one.remember !== null) {
        this.#ids = { ...this.#ids, ...(await one.remember(result as never)) };
        for (const [name, id] of Object.entries(this.#ids))
          if (id === "") throw new Error(`${textOf(one)}: nothing for ${name}`);
      }
      this.#note(one);
      this.#step.abort();
      this.#step = new AbortController();
    }
  }

  #note(one: Step): void {
    const [sent] = this.#sent;
    if (sent === undefined) throw new Error(`${textOf(one)} sends nothing`);
    const template = this.#templateOf(sent.path);
    const operation = `${sent.method} ${template}`;
    if (this.#examples[operation] !== undefined) throw new Error(`${operation} has two examples`);
    const values = sent.path.split("/");
    const params = template
      .split("/")
      .flatMap((segment, i) =>
        segment.startsWith("{")
          ? [[segment.slice(1, -1), this.#names.inText(decodeURIComponent(values[i] ?? ""))] as const]
          : [],
      );
    const query = Object.fromEntries(
      [...new Set(sent.query.keys())].map((name) => {
        const all = sent.query.getAll(name);
        return [name, all.length === 1 ? (all[0] ?? "") : all];
      }),
    );
    this.#examples[operation] = {
      params: Object.fromEntries(params),
      query,
      ...(sent.body === undefined ? {} : { body: this.#names.in(sent.body) }),
      line: textOf(one),
      ...(one.refused === null ? {} : { refused: one.refused.because }),
      status: sent.status,
      contentType: sent.contentType,
      ...answerOf(sent, this.#names),
    };
  }

  /** The template with the most literal segments: `/agents/problems` is not an agent. */
  #templateOf(path: string): string {
    const segments = path.split("/");
    const found = this.#templates
      .map((template) => ({ template, parts: template.split("/") }))
      .filter(
        ({ parts }) =>
          parts.length === segments.length &&
          parts.every((part, i) => part.startsWith("{") || part === segments[i]),
      )
      .toSorted((a, b) => parameters(a.parts) - parameters(b.parts));
    if (found[0] === undefined) throw new Error(`no operation has the path ${path}`);
    return found[0].template;
  }

  async #call(): Promise<void> {
    const response = await fetch(`${this.#url}/v1/default/shop/echo/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json", "gw-aig-authorization": `Bearer ${ROOT_TOKEN}` },
      body: JSON.stringify({ model: "echo", messages: [{ role: "user", content: "Say hello" }] }),
    });
    if (!response.ok) throw new Error(await response.text());
    await response.arrayBuffer();
  }

  /** A delivery from a sender that has the secret. */
  async #send(source: string, entity: string, type: string): Promise<void> {
    const isGithub = source === "github";
    const body = isGithub
      ? JSON.stringify({ repository: { full_name: entity } })
      : JSON.stringify({ id: crypto.randomUUID(), type, entity });
    const signature = `sha256=${createHmac("sha256", SECRET).update(body).digest("hex")}`;
    const own = isGithub
      ? {
          "x-hub-signature-256": signature,
          "x-github-event": type,
          "x-github-delivery": crypto.randomUUID(),
        }
      : { "x-signature": signature };
    const path = isGithub ? source : `${source}/${entity}`;
    const response = await fetch(`${this.#url}/webhooks/${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", ...own } as Record<string, string>,
      body,
    });
    if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
    await response.arrayBuffer();
  }
}

const parameters = (parts: readonly string[]) => parts.filter((part) => part.startsWith("{")).length;

async function readExchange(
  address: string,
  init: RequestInit | undefined,
  response: Response,
): Promise<Sent> {
  const url = new URL(address);
  const contentType = response.headers.get("content-type") ?? "";
  return {
    method: init?.method ?? "GET",
    path: url.pathname,
    query: url.searchParams,
    body: typeof init?.body === "string" ? (JSON.parse(init.body) as unknown) : undefined,
    status: response.status,
    contentType: contentType.split(";")[0] ?? "",
    answer: await readBeginning(response),
  };
}

/** A stream has no end; its first bytes are enough. */
async function readBeginning(response: Response): Promise<string> {
  if (response.body === null) return "";
  if (!/event-stream|tar/.test(response.headers.get("content-type") ?? "")) return response.text();
  const reader = response.body.getReader();
  const { value } = await reader.read();
  void reader.cancel();
  return Buffer.from(value ?? new Uint8Array()).toString("latin1");
}

function answerOf({ answer, contentType }: Sent, names: Names): { readonly answer?: unknown } {
  if (contentType === "application/x-tar") return {};
  const isJson = contentType === "application/json" && answer !== "";
  return { answer: isJson ? shortened(names.in(JSON.parse(answer))) : names.inText(answer) };
}

const MAX_ROWS = 2;
const MAX_TEXT = 400;

/** Long lists and texts tell a reader no more than their beginning. */
function shortened(value: unknown): unknown {
  if (typeof value === "string") return value.length > MAX_TEXT ? `${value.slice(0, MAX_TEXT)}…` : value;
  if (Array.isArray(value)) return value.slice(0, MAX_ROWS).map(shortened);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, shortened(one)]));
}

/** Work behind an answer ends soon; a minute means that it never does. */
async function until(isSo: () => Promise<boolean>): Promise<void> {
  for (let i = 0; i < 1200; i++) {
    if (await isSo()) return;
    await delay(50);
  }
  throw new Error("nothing came of a step of the examples");
}
