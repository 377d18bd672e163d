import { List } from "./list.ts";
import { pathOf } from "./path.ts";
import type { RequestOptions, Transport } from "./transport.ts";

export interface Source {
  readonly name: string;
  readonly kind: string;
  /** Description of the signature scheme. */
  readonly scheme: string;
  readonly path: string;
  readonly agent: string;
  /** Environment variable that holds the secrets. */
  readonly secret_variable: string;
  /** Number of secrets in the variable. */
  readonly secrets: number;
  readonly window_seconds: number | null;
  readonly entity: readonly string[];
  readonly entity_form: "plain" | "reversible";
}

export type DeliveryStatus = "accepted" | "duplicate" | "rejected" | "failed";

export interface Delivery {
  readonly id: string;
  readonly source: string;
  readonly status: DeliveryStatus;
  readonly reason: string | null;
  readonly http_status: number;
  readonly received_at: string;
  readonly duration_ms: number;
  readonly delivery_id: string | null;
  readonly type: string | null;
  readonly title: string | null;
  readonly agent: string;
  readonly instance: string | null;
  readonly body_bytes: number;
}

export interface DeliveryDetail extends Delivery {
  readonly content_type: string | null;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
  readonly body_encoding: "utf8" | "base64" | null;
}

export interface DeliveryQuery {
  readonly source?: string | undefined;
  readonly status?: DeliveryStatus | undefined;
  readonly instance?: string | undefined;
  readonly type?: string | undefined;
  readonly delivery_id?: string | undefined;
  /** Lists only deliveries after this id, oldest first. */
  readonly after?: string | undefined;
  /** Page size, at most 100. */
  readonly limit?: number | undefined;
}

export interface SampleDelivery {
  readonly entity?: string | undefined;
  readonly payload?: Readonly<Record<string, unknown>> | readonly unknown[] | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

export class WebhooksApi {
  readonly #transport: Transport;
  readonly #path: string;

  constructor(transport: Transport, accountPath: string) {
    this.#transport = transport;
    this.#path = `${accountPath}/webhooks`;
  }

  sources(options: RequestOptions = {}): List<Source> {
    return new List(this.#transport, `${this.#path}/sources`, {}, options);
  }

  async source(name: string, options: RequestOptions = {}): Promise<Source> {
    return this.#transport.result<Source>("GET", this.#path + pathOf`/sources/${name}`, options);
  }

  /** Has the service sign a sample with the source's secret and process it like a delivery from the provider. */
  async sendTest(
    source: string,
    sample: SampleDelivery = {},
    options: RequestOptions = {},
  ): Promise<{ status: number; body: string; delivery_id: string }> {
    const path = this.#path + pathOf`/sources/${source}/test`;
    const request = { body: sample, ...options };
    return this.#transport.result<{ status: number; body: string; delivery_id: string }>(
      "POST",
      path,
      request,
    );
  }

  /** Lists deliveries, newest first. */
  deliveries(query: DeliveryQuery = {}, options: RequestOptions = {}): List<Delivery> {
    return new List(this.#transport, `${this.#path}/deliveries`, { ...query }, options);
  }

  async delivery(id: string, options: RequestOptions = {}): Promise<DeliveryDetail> {
    const path = this.#path + pathOf`/deliveries/${id}`;
    return this.#transport.result<DeliveryDetail>("GET", path, options);
  }

  /** Sends a stored delivery to its agent again. */
  async replay(id: string, options: RequestOptions = {}): Promise<{ status: string; event_id: string }> {
    const path = this.#path + pathOf`/deliveries/${id}/replay`;
    return this.#transport.result<{ status: string; event_id: string }>("POST", path, options);
  }
}
