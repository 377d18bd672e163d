import { List } from "./list.ts";
import { pathOf } from "./path.ts";
import type { RequestOptions, Transport } from "./transport.ts";
import { WebhookRoutingApi } from "./webhook-routing.ts";

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
  /** Empty if the delivery was stored for the routes of its source. */
  readonly agent: string;
  readonly instance: string | null;
  readonly body_bytes: number;
  /** The reason in words. */
  readonly explanation: string | null;
  /** Why the agent's handler failed or refused the event. */
  readonly error: Omit<DeliveryError, "stack"> | null;
  /** When an operator has replayed a failed delivery with success. */
  readonly replayed_at: string | null;
}

export interface DeliveryError {
  readonly name: string;
  readonly message: string;
  readonly stack: string | null;
}

/** What is known of a request that was rejected. Nothing of it is verified. */
export interface RejectedRequest {
  readonly address: string | null;
  readonly user_agent: string | null;
  readonly header_names: readonly string[];
  /** The signature that was received, shortened. */
  readonly signature: { readonly header: string; readonly value: string } | null;
  /** The header and algorithm that the source expects. */
  readonly expected: string;
  readonly body_preview: string | null;
  /** Rejected deliveries of the source since the row before this one that are not listed. */
  readonly also_rejected: number;
}

export interface DeliveryDetail extends Delivery {
  readonly error: DeliveryError | null;
  /** Null unless the delivery was rejected. */
  readonly request: RejectedRequest | null;
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
  readonly reason?: string | undefined;
  /** A part of the instance, an id, the type, the title or the body. */
  readonly search?: string | undefined;
  /** ISO 8601. */
  readonly since?: string | undefined;
  readonly until?: string | undefined;
  /** Only failed deliveries that were neither replayed nor accepted later. */
  readonly unresolved?: boolean | undefined;
  /** Lists only deliveries after this id, oldest first. */
  readonly after?: string | undefined;
  /** Page size, at most 100. */
  readonly limit?: number | undefined;
}

/** Deliveries that arrived within one step of time. */
export interface DeliveryStep extends Readonly<Record<DeliveryStatus, number>> {
  /** The beginning of the step. */
  readonly at: string;
}

export interface DeliveryHistogramQuery {
  readonly source?: string | undefined;
  readonly type?: string | undefined;
  readonly reason?: string | undefined;
  readonly instance?: string | undefined;
  readonly search?: string | undefined;
  /** ISO 8601. */
  readonly since: string;
  readonly until: string;
  /** At most 1,000 steps. */
  readonly step_seconds: number;
}

export interface SampleDelivery {
  readonly entity?: string | undefined;
  /** Event type, where the source's samples have one. */
  readonly type?: string | undefined;
  readonly payload?: Readonly<Record<string, unknown>> | readonly unknown[] | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** A sample of what the provider sends, without a signature. */
export interface WebhookSample {
  readonly entity: string;
  readonly type: string | null;
  readonly content_type: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** The answer that the provider would have received, and where the sample went. */
export interface SampleResult {
  readonly status: number;
  readonly body: string;
  /** The provider's id of the delivery. */
  readonly delivery_id: string;
  /** Id in the list of deliveries. */
  readonly id: string;
  readonly outcome: DeliveryStatus;
  readonly reason: string | null;
  readonly explanation: string | null;
  readonly agent: string;
  readonly instance: string | null;
  readonly error: DeliveryError | null;
}

export interface DeliveryCounts {
  readonly accepted: number;
  readonly duplicate: number;
  readonly rejected: number;
  readonly failed: number;
  /** Failed deliveries that were neither replayed nor accepted later. */
  readonly failing: number;
  /** Rejected deliveries that are counted and not listed. */
  readonly unlisted_rejected: number;
}

export interface DeliverySummary {
  readonly since: string | null;
  readonly until: string | null;
  readonly totals: DeliveryCounts;
  readonly sources: readonly (DeliveryCounts & {
    readonly source: string;
    readonly last_received_at: string;
    readonly last_failed_at: string | null;
    readonly last_error: string | null;
  })[];
}

/** Which failed deliveries are replayed; those that are resolved are left out. */
export interface ReplayFilter {
  readonly source?: string | undefined;
  readonly type?: string | undefined;
  readonly instance?: string | undefined;
  readonly reason?: string | undefined;
  readonly since?: string | undefined;
  readonly until?: string | undefined;
  /** Deliveries of one call, at most 1,000. Default: 100. */
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
}

export interface ReplayResult {
  /** Deliveries that the call has tried. */
  readonly matched: number;
  readonly replayed: number;
  readonly failed: readonly { readonly id: string; readonly error: string }[];
  /** Their bodies were not kept, or their source does not exist any more. */
  readonly skipped: number;
  /** Continues the replay; null at the end. */
  readonly cursor: string | null;
}

export class WebhooksApi {
  readonly #transport: Transport;
  readonly #path: string;
  /** Routes of sources, their events, bulk replays and examples. */
  readonly routing: WebhookRoutingApi;

  constructor(transport: Transport, accountPath: string) {
    this.#transport = transport;
    this.#path = `${accountPath}/webhooks`;
    this.routing = new WebhookRoutingApi(transport, this.#path);
  }

  sources(options: RequestOptions = {}): List<Source> {
    return new List(this.#transport, `${this.#path}/sources`, {}, options);
  }

  async source(name: string, options: RequestOptions = {}): Promise<Source> {
    return this.#transport.result<Source>("GET", this.#path + pathOf`/sources/${name}`, options);
  }

  /** Reads the sample that `sendTest` would sign and send. */
  async sample(
    source: string,
    query: Pick<SampleDelivery, "entity" | "type"> = {},
    options: RequestOptions = {},
  ): Promise<WebhookSample> {
    const path = this.#path + pathOf`/sources/${source}/sample`;
    return this.#transport.result<WebhookSample>("GET", path, { query: { ...query }, ...options });
  }

  /** Has the service sign a sample with the source's secret and process it like a delivery from the provider. */
  async sendTest(
    source: string,
    sample: SampleDelivery = {},
    options: RequestOptions = {},
  ): Promise<SampleResult> {
    const path = this.#path + pathOf`/sources/${source}/test`;
    return this.#transport.result<SampleResult>("POST", path, { body: sample, ...options });
  }

  /** Lists deliveries, newest first. */
  deliveries(query: DeliveryQuery = {}, options: RequestOptions = {}): List<Delivery> {
    return new List(this.#transport, `${this.#path}/deliveries`, { ...query }, options);
  }

  async delivery(id: string, options: RequestOptions = {}): Promise<DeliveryDetail> {
    const path = this.#path + pathOf`/deliveries/${id}`;
    return this.#transport.result<DeliveryDetail>("GET", path, options);
  }

  /** Counts the listed deliveries by source and outcome. */
  async summary(
    query: { readonly since?: string | undefined; readonly until?: string | undefined } = {},
    options: RequestOptions = {},
  ): Promise<DeliverySummary> {
    return this.#transport.result("GET", `${this.#path}/deliveries/summary`, {
      query: { ...query },
      ...options,
    });
  }

  /** Counts the listed deliveries by outcome in steps of time; steps without deliveries are left out. */
  histogram(query: DeliveryHistogramQuery, options: RequestOptions = {}): Promise<DeliveryStep[]> {
    return this.#transport.result("GET", `${this.#path}/deliveries/histogram`, {
      query: { ...query },
      ...options,
    });
  }

  /** Sends a stored delivery to its agent again. */
  async replay(
    id: string,
    options: RequestOptions = {},
  ): Promise<{ status: string; event_id: string; error: DeliveryError | null }> {
    return this.#transport.result("POST", this.#path + pathOf`/deliveries/${id}/replay`, options);
  }

  /** Sends failed deliveries to their agents again, oldest first. Call again with the cursor until it is null. */
  async replayFailed(filter: ReplayFilter = {}, options: RequestOptions = {}): Promise<ReplayResult> {
    return this.#transport.result("POST", `${this.#path}/deliveries/replay`, { body: filter, ...options });
  }
}
