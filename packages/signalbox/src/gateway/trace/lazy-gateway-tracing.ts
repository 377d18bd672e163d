/** The tracing of calls, loaded when the whole service or a gateway has a receiver. */
import type { LazyTracing } from "../../telemetry/lazy-tracing.ts";
import type { Gateway } from "../settings/gateway.ts";
import type { OtelReceivers } from "../settings/otel-receivers.ts";
import type { GatewayTracing } from "./call-tracing.ts";

export class LazyGatewayTracing {
  /** Null while nothing receives spans of calls. */
  current: GatewayTracing | null = null;
  readonly #lazy: LazyTracing;
  readonly #receivers: OtelReceivers;
  #loading: Promise<void> | null = null;

  constructor(lazy: LazyTracing, receivers: OtelReceivers) {
    this.#lazy = lazy;
    this.#receivers = receivers;
  }

  /** Called after the gateways were loaded and before the first call. */
  async start(): Promise<void> {
    if (this.#lazy.service !== null) this.#load();
    await this.#loading;
  }

  /** A gateway was loaded or changed. Resolves when its calls are traced, if they are to be. */
  async follow({ settings }: Gateway): Promise<void> {
    if (settings.otel === null || settings.otel.length === 0) return;
    this.#load();
    await this.#loading;
  }

  #load(): void {
    this.#loading ??= this.#open();
  }

  async #open(): Promise<void> {
    const [tracing, { GatewayTracing }] = await Promise.all([this.#lazy.load(), import("./call-tracing.ts")]);
    this.current = new GatewayTracing({ tracing, receivers: this.#receivers });
  }
}
