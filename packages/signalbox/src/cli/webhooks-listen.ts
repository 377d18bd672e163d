/**
 * `signalbox webhooks listen`: passes deliveries of the server to a program on this machine. What arrived while the command was not running comes first.
 * Each answer is reported, so that the server has it as an attempt; a delivery without a report is sent again.
 */
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import type { ListenedDelivery, ListenerResult, RouteFilters, WebhookRoutingApi } from "@signalbox/client";
import { plainLine } from "../core/plain-text.ts";
import { type Command, type CommandContext, UsageError } from "./command.ts";
import { type LocalTarget, postLocally } from "./listen/local-program.ts";
import { openPage } from "./listen/open-page.ts";
import { type Key, onKeys } from "./listen/terminal-keys.ts";
import { ACCOUNT_OPTION, CLIENT_OPTIONS } from "./options.ts";
import { stopSignal } from "./stop-signal.ts";
import { type Style, styleOf } from "./style.ts";

const MAX_CONNECTIONS = 50;
/** Answers of this time are reported together: each report is an entry of the audit log. */
const REPORT_MS = 200;
/** In one report. */
const MAX_RESULTS = 100;
/** Kept for the next report when one has failed. */
const MAX_UNREPORTED = 1000;
/** Three signs of life of the server. */
const SILENT_MS = 45_000;
const MAX_RETRY_MS = 30_000;
const UNITS_MS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
/** Lines that keys can refer to. */
const REMEMBERED = 100;

export const webhooksListen: Command = {
  words: ["webhooks", "listen"],
  positionals: ["<port>", "[source...]"],
  summary:
    "Pass deliveries to a program on this machine (a port or an address), until interrupted: first those that have waited.",
  options: [
    { name: "path", value: "PATH", summary: "path of the program (default: that of the sender's request)" },
    {
      name: "since",
      value: "TIME",
      summary: "deliveries from this time on, e.g. 30m, 2h, 1d or 2026-01-31T12:00:00Z",
    },
    {
      name: "instead-of",
      value: "ROUTE",
      summary: "take the events of this route; its target receives nothing meanwhile",
    },
    { name: "filter-body", value: "JSON", summary: "only deliveries whose body matches" },
    { name: "filter-headers", value: "JSON", summary: "only deliveries whose headers match" },
    { name: "sign", summary: "sign deliveries anew, with the present time" },
    {
      name: "name",
      value: "NAME",
      summary: "name of this listener (default: listen- and the name of the machine)",
    },
    {
      name: "max-connections",
      value: "N",
      summary: `requests at a time (1 to 200, default ${MAX_CONNECTIONS})`,
    },
    { name: "limit", value: "N", summary: "end after this many deliveries" },
    { name: "quiet", summary: "print failures only" },
    { name: "forget", summary: "remove the listener at the end: what arrives later is not kept for it" },
    ACCOUNT_OPTION,
    ...CLIENT_OPTIONS,
  ],
  async run(context) {
    const session = await Session.open(context);
    return session.run();
  },
};

class Session {
  readonly #context: CommandContext;
  readonly #api: WebhookRoutingApi;
  readonly #name: string;
  readonly #target: LocalTarget;
  readonly #style: Style;
  readonly #stop = new AbortController();
  readonly #signal: AbortSignal;
  readonly #running = new Set<Promise<void>>();
  readonly #shown: { delivery: ListenedDelivery; result: ListenerResult }[] = [];
  readonly #limit: number;
  #selected = -1;
  #received = 0;
  #reports: ListenerResult[] = [];
  #reporting: Promise<void> | null = null;
  #hasFailed = false;

  private constructor(context: CommandContext, api: WebhookRoutingApi) {
    this.#context = context;
    this.#api = api;
    this.#name = context.option("name") ?? defaultName();
    this.#target = { origin: parseTarget(context.positionals[0] ?? ""), path: context.option("path") };
    this.#style = styleOf(context.out, context.environment);
    this.#limit = countOf(context, "limit", Number.POSITIVE_INFINITY);
    this.#signal = AbortSignal.any([stopSignal(), this.#stop.signal]);
  }

  static async open(context: CommandContext): Promise<Session> {
    const { webhooks } = await context.account();
    return new Session(context, webhooks.routing);
  }

  async run(): Promise<number> {
    const context = this.#context;
    const max = countOf(context, "max-connections", MAX_CONNECTIONS);
    if (max > 200) throw new UsageError("--max-connections: at most 200");
    const { sources, waiting, notKept } = await this.#register();
    this.#note(
      `listening as ${this.#name} to ${sources.join(", ")} → ${this.#target.origin.origin}${this.#target.path ?? ""}${waiting > 0 ? `; ${waiting} waiting` : ""}`,
    );
    if (notKept > 0)
      this.#note(`${notKept} deliveries were larger than the server keeps for its list; they cannot be sent`);
    const restore = context.isJson ? null : onKeys((key) => void this.#press(key));
    if (restore !== null) this.#note("keys: ↑↓ select, r retry, d details, o open, q quit");
    try {
      await this.#follow(max);
    } finally {
      restore?.();
    }
    await Promise.all(this.#running);
    await this.#report();
    await this.#end();
    return this.#hasFailed ? 1 : 0;
  }

  async #register(): Promise<{ sources: readonly string[]; waiting: number; notKept: number }> {
    const [, ...sources] = this.#context.positionals;
    const {
      routes,
      waiting,
      not_kept: notKept,
    } = await this.#api.putListener(this.#name, {
      sources: sources.length === 0 ? undefined : sources,
      when: filtersOf(this.#context),
      instead_of: this.#context.option("instead-of"),
      since: sinceOf(this.#context),
    });
    return { sources: routes.map(({ source }) => source), waiting, notKept };
  }

  /** Connects, and again after each failure, until the user or the limit ends it. */
  async #follow(max: number): Promise<void> {
    let failures = 0;
    while (!this.#signal.aborted && this.#received < this.#limit) {
      try {
        await this.#receive(max, () => {
          if (failures > 0) this.#note("connected again");
          failures = 0;
        });
        if (this.#signal.aborted || this.#received >= this.#limit) return;
        failures += 1;
      } catch (error) {
        if (this.#signal.aborted) return;
        failures += 1;
        const status = (error as { readonly status?: unknown }).status;
        // A listener that was forgotten while the machine slept is created again.
        if (status === 404) await this.#register().catch(() => undefined);
        else if (typeof status === "number" && status >= 400 && status < 500 && status !== 429) throw error;
      }
      const delayMs = Math.min(MAX_RETRY_MS, 500 * 2 ** Math.min(failures, 10));
      if (failures > 1)
        this.#note(`the server cannot be reached; trying again in ${Math.round(delayMs / 1000)} s`);
      // The user ended the wait; the loop looks at the signal.
      await sleep(delayMs, undefined, { signal: this.#signal }).catch(() => undefined);
    }
  }

  async #receive(max: number, onSign: () => void): Promise<void> {
    const silent = new AbortController();
    let timer = setTimeout(() => silent.abort(), SILENT_MS);
    const isSigned = this.#context.hasSwitch("sign");
    try {
      const signal = AbortSignal.any([this.#signal, silent.signal]);
      for await (const delivery of this.#api.listen(this.#name, { max, sign: isSigned }, { signal })) {
        clearTimeout(timer);
        timer = setTimeout(() => silent.abort(), SILENT_MS);
        onSign();
        if (delivery === null) continue;
        this.#received += 1;
        const work = this.#pass(delivery).finally(() => this.#running.delete(work));
        this.#running.add(work);
        if (this.#received >= this.#limit) return;
      }
    } finally {
      clearTimeout(timer);
    }
  }

  async #pass(delivery: ListenedDelivery): Promise<void> {
    const result = await postLocally(this.#target, delivery, this.#signal);
    // Broken off by the user: the server sends it again.
    if (this.#signal.aborted && result.status === null) return;
    this.#show(delivery, result);
    this.#reports.push(result);
    this.#reporting ??= sleep(REPORT_MS)
      .then(() => this.#report())
      .finally(() => (this.#reporting = null));
    await this.#reporting;
  }

  /** Answers that cannot be reported now are reported with later ones; without a report, the server sends the event again. */
  async #report(): Promise<void> {
    while (this.#reports.length > 0) {
      const results = this.#reports.splice(0, MAX_RESULTS);
      try {
        await this.#api.reportResults(this.#name, results);
      } catch (error) {
        this.#reports = [...results, ...this.#reports].slice(-MAX_UNREPORTED);
        this.#note(
          `answers could not be reported: ${error instanceof Error ? error.message : String(error)}`,
        );
        return;
      }
    }
  }

  async #end(): Promise<void> {
    if (this.#context.hasSwitch("forget") || this.#context.option("instead-of") !== undefined) {
      // The server forgets a listener that is gone by itself.
      await this.#api.deleteListener(this.#name).catch(() => undefined);
      return;
    }
    this.#note(
      `what arrives in the next 24 hours is kept for ${this.#name}; run the command again to receive it, or with --forget to end it`,
    );
  }

  #show(delivery: ListenedDelivery, result: ListenerResult): void {
    const isDelivered = result.status !== null && result.status >= 200 && result.status <= 299;
    if (!isDelivered) this.#hasFailed = true;
    this.#shown.push({ delivery, result });
    if (this.#shown.length > REMEMBERED) this.#shown.shift();
    this.#selected = this.#shown.length - 1;
    if (isDelivered && this.#context.hasSwitch("quiet")) return;
    const { body: _body, headers: _headers, ...about } = delivery;
    const { status, error, duration_ms: durationMs } = result;
    this.#context.print({ ...about, status, error, duration_ms: durationMs }, () =>
      this.#line({ delivery, result }),
    );
  }

  #line({ delivery, result }: { delivery: ListenedDelivery; result: ListenerResult }): string {
    const { status, error, duration_ms: durationMs } = result;
    const isDelivered = status !== null && status >= 200 && status <= 299;
    const mark = this.#style(isDelivered ? "green" : "red", isDelivered ? "✓" : "✗");
    const end = status === null ? (error ?? "") : `${status} in ${durationMs} ms`;
    const attempt = delivery.attempt > 1 ? ` (attempt ${delivery.attempt})` : "";
    return `${mark} ${plainLine(`${delivery.received_at} ${delivery.source} ${delivery.type} → ${end}${attempt} ${delivery.event}`)}\n`;
  }

  /** To standard error, so that `--json` has deliveries only on standard output. */
  #note(text: string): void {
    this.#context.err.write(`${this.#style("dim", plainLine(text))}\n`);
  }

  async #press(key: Key): Promise<void> {
    if (key === "q") return this.#stop.abort();
    if (key === "up" || key === "down") {
      const next = this.#selected + (key === "up" ? -1 : 1);
      this.#selected = Math.max(0, Math.min(this.#shown.length - 1, next));
    }
    const chosen = this.#shown[this.#selected];
    if (chosen === undefined) return;
    const { event } = chosen.delivery;
    switch (key) {
      case "r":
        // An event without a result is not sent again.
        await this.#reporting;
        await this.#api.replayEvent(event).then(
          () => this.#note(`sent again: ${event}`),
          (error: unknown) => this.#note(error instanceof Error ? error.message : String(error)),
        );
        return;
      case "o": {
        const account = this.#context.option("account") ?? "default";
        const page = `/dashboard/accounts/${account}/webhooks/events/${event}`;
        const url = (await this.#context.trafficUrl()).replace(/\/+$/, "") + page;
        this.#note(url);
        openPage(url);
        return;
      }
      case "d":
        this.#context.err.write(details(chosen));
        return;
      default:
        this.#context.err.write(`> ${this.#line(chosen)}`);
    }
  }
}

function details({ delivery, result }: { delivery: ListenedDelivery; result: ListenerResult }): string {
  const list = (headers: Readonly<Record<string, string>>) =>
    Object.entries(headers).map(([name, value]) => `  ${name}: ${value}`);
  const text = (base64: string) => Buffer.from(base64, "base64").toString();
  return [
    `POST ${result.url}`,
    ...list(delivery.headers),
    text(delivery.body),
    result.status === null ? `no answer: ${result.error ?? ""}` : `answer ${result.status}`,
    ...list(result.headers ?? {}),
    text(result.body ?? ""),
    "",
  ]
    .flatMap((part) => part.split("\n"))
    .map((line) => `${plainLine(line)}\n`)
    .join("");
}

function defaultName(): string {
  const machine = hostname()
    .toLowerCase()
    .replace(/[^a-z0-9_-]+/g, "-");
  return `listen-${machine}`.slice(0, 64).replace(/-+$/, "");
}

function parseTarget(text: string): URL {
  const isPort = /^\d{1,5}$/.test(text) && Number(text) >= 1 && Number(text) <= 65_535;
  const url = isPort ? new URL(`http://localhost:${text}`) : URL.parse(text);
  if (url?.protocol !== "http:")
    throw new UsageError(`expected a port or an http:// address, found "${text}"`);
  return url;
}

function filtersOf(context: CommandContext): RouteFilters | undefined {
  const body = readJson(context, "filter-body");
  const headers = readJson(context, "filter-headers") as RouteFilters["headers"];
  if (body === undefined && headers === undefined) return undefined;
  return { ...(body === undefined ? {} : { body }), ...(headers === undefined ? {} : { headers }) };
}

function readJson(context: CommandContext, name: string): unknown {
  const text = context.option(name);
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    throw new UsageError(`--${name}: expected JSON, found "${text.slice(0, 40)}"`);
  }
}

function sinceOf(context: CommandContext): string | undefined {
  const text = context.option("since");
  if (text === undefined) return undefined;
  const [, count, unit] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  if (count !== undefined)
    return new Date(Date.now() - Number(count) * UNITS_MS[unit as keyof typeof UNITS_MS]).toISOString();
  const time = Date.parse(text);
  if (Number.isNaN(time))
    throw new UsageError(`--since: expected e.g. 30m, 2h, 1d or a time, found "${text}"`);
  return new Date(time).toISOString();
}

function countOf(context: CommandContext, name: string, otherwise: number): number {
  const text = context.option(name);
  if (text === undefined) return otherwise;
  if (!/^[1-9]\d{0,8}$/.test(text))
    throw new UsageError(`--${name}: expected a whole number above 0, found "${text}"`);
  return Number(text);
}
