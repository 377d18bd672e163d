import { pathOf } from "./path.ts";
import type { RequestOptions, Transport } from "./transport.ts";

export type AlertMetric =
  | "error_rate"
  | "latency_p95"
  | "spend"
  | "guardrails"
  | "failed_deliveries"
  | "paused_routes"
  | "webhook_issues"
  | "dead_letters";

/** `[secret]` in place of a stored address or secret. */
export type AlertReceiver =
  | { readonly type: "webhook"; readonly url: string; readonly secret?: string | undefined }
  | { readonly type: "slack"; readonly url: string };

export interface AlertSettings {
  readonly name: string;
  readonly enabled?: boolean | undefined;
  readonly metric: AlertMetric;
  /** A share from 0 to 1, seconds, US dollars, or a number of events. */
  readonly threshold: number;
  /** Seconds. */
  readonly window?: number | undefined;
  readonly min_calls?: number | undefined;
  readonly gateway_id?: string | null | undefined;
  readonly provider?: string | null | undefined;
  /** Of the metric `guardrails`: only this rule. */
  readonly guardrail?: string | undefined;
  readonly source?: string | null | undefined;
  /** Seconds. */
  readonly quiet_period?: number | undefined;
  readonly notify_resolved?: boolean | undefined;
  readonly receivers: readonly AlertReceiver[];
}

export interface Alert extends Required<AlertSettings> {
  readonly id: string;
  readonly status: "ok" | "firing";
  /** Of the last check; null when there was too little to measure. */
  readonly value: number | null;
  readonly since: string | null;
  readonly notified_at: string | null;
  readonly created_at: string;
  readonly modified_at: string;
}

export interface AlertNotice {
  readonly id: string;
  readonly kind: "firing" | "resolved" | "test";
  readonly receiver: string;
  readonly attempts: number;
  readonly created_at: string;
  readonly delivered_at: string | null;
  readonly next_attempt_at: string | null;
  readonly problem: string | null;
}

export class AlertsApi {
  readonly #transport: Transport;
  readonly #path: string;

  constructor(transport: Transport, accountPath: string) {
    this.#transport = transport;
    this.#path = `${accountPath}/alerts`;
  }

  async list(options: RequestOptions = {}): Promise<Alert[]> {
    return this.#transport.result<Alert[]>("GET", this.#path, options);
  }

  async get(id: string, options: RequestOptions = {}): Promise<Alert> {
    return this.#transport.result<Alert>("GET", this.#path + pathOf`/${id}`, options);
  }

  async create(settings: AlertSettings, options: RequestOptions = {}): Promise<Alert> {
    return this.#transport.result<Alert>("POST", this.#path, { body: settings, ...options });
  }

  /** Replaces the settings; absent ones get their defaults. */
  async replace(id: string, settings: AlertSettings, options: RequestOptions = {}): Promise<Alert> {
    const request = { body: settings, ...options };
    return this.#transport.result<Alert>("PUT", this.#path + pathOf`/${id}`, request);
  }

  async delete(id: string, options: RequestOptions = {}): Promise<Alert> {
    return this.#transport.result<Alert>("DELETE", this.#path + pathOf`/${id}`, options);
  }

  /** Newest first. */
  async notices(id: string, options: RequestOptions = {}): Promise<AlertNotice[]> {
    return this.#transport.result<AlertNotice[]>("GET", this.#path + pathOf`/${id}/notices`, options);
  }

  /** Sends a test notice to every receiver. */
  async test(id: string, options: RequestOptions = {}): Promise<{ readonly queued: number }> {
    return this.#transport.result<{ queued: number }>("POST", this.#path + pathOf`/${id}/test`, {
      body: {},
      ...options,
    });
  }
}
