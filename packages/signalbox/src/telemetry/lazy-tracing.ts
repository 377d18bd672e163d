/** Loads OpenTelemetry when something needs it: a service without it has none of it in memory. */
import type { Registry } from "prom-client";
import type { Logger } from "./logger.ts";
import type { OtelSettings } from "./otel-settings.ts";
import type { Tracing } from "./tracing.ts";
import type { TurnSpans } from "./turn-spans.ts";

export interface LazyTracingParts {
  /** Null when the whole service sends nothing. */
  readonly settings: OtelSettings | null;
  readonly logger: Logger;
  readonly registry: Registry;
}

export class LazyTracing {
  readonly #parts: LazyTracingParts;
  #loading: Promise<Tracing> | null = null;
  /** Of the whole service; null while it sends nothing. */
  service: Tracing | null = null;
  /** Of deliveries and turns; null while the whole service sends nothing. */
  turns: TurnSpans | null = null;

  constructor(parts: LazyTracingParts) {
    this.#parts = parts;
  }

  /** Called before the first request: from then on `service` is known. */
  async start(): Promise<void> {
    if (this.#parts.settings === null) return;
    const [service, { TurnSpans }] = await Promise.all([this.load(), import("./turn-spans.ts")]);
    this.service = service;
    this.turns = service.receivers.length === 0 ? null : new TurnSpans(service);
  }

  load(): Promise<Tracing> {
    this.#loading ??= import("./tracing.ts").then(({ Tracing }) => new Tracing(this.#parts));
    return this.#loading;
  }

  async close(): Promise<void> {
    await (await this.#loading)?.close();
  }
}
