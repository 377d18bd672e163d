import { List } from "./list.ts";
import { readEventStream } from "./event-stream.ts";
import { pathOf } from "./path.ts";
import type { RequestOptions, Transport } from "./transport.ts";

/** Conditions on the parts of a delivery: values, `$eq`, `$gt`, `$in`, `$or`, `$ref` and so on. */
export interface RouteFilters {
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, unknown>> | undefined;
  readonly query?: Readonly<Record<string, unknown>> | undefined;
  readonly path?: unknown;
}

/** `[secret]` in place of the stored secret of the same address. */
export type RouteAuth =
  | { readonly type: "bearer" | "signature" | "standard"; readonly secret: string }
  | { readonly type: "basic"; readonly username: string; readonly secret: string }
  | { readonly type: "header"; readonly name: string; readonly secret: string };

export type RouteTarget =
  | { readonly agent: string }
  | { readonly object: string }
  /** Events wait for the listener of the route's name. */
  | { readonly listen: true }
  | {
      readonly url: string;
      readonly method?: "POST" | "PUT" | "PATCH" | "DELETE" | undefined;
      readonly headers?: Readonly<Record<string, string>> | undefined;
      readonly auth?: RouteAuth | undefined;
      readonly timeoutMs?: number | undefined;
    };

export type RouteRetry = { readonly statuses?: readonly (number | string)[] | undefined } & (
  | { readonly strategy: "linear" | "exponential"; readonly intervalMs: number; readonly count: number }
  | { readonly strategy: "list"; readonly intervalsMs: readonly number[] }
);

export interface RouteSettings {
  readonly when?: RouteFilters | undefined;
  readonly to: RouteTarget;
  readonly dedupe?:
    | { readonly windowMs: number; readonly fields?: readonly string[] | undefined }
    | undefined;
  /** Milliseconds before the first attempt. */
  readonly delay?: number | undefined;
  readonly retry?: RouteRetry | undefined;
  readonly rate?:
    | {
        readonly limit?: number | undefined;
        readonly per?: "second" | "minute" | "hour" | undefined;
        readonly concurrent?: number | undefined;
      }
    | undefined;
  readonly order?: "entity" | undefined;
  /** Absent in a change: as it is. */
  readonly paused?: boolean | undefined;
}

export interface WebhookRoute extends RouteSettings {
  readonly source: string;
  readonly name: string;
  /** Routes of the configuration file cannot be changed through the interface. */
  readonly defined_in: "file" | "api";
  readonly paused: boolean;
  readonly paused_at: string | null;
  /** `gone`: the receiver answered 410. `failing`: it only failed for five days. */
  readonly paused_because: "operator" | "gone" | "failing" | null;
  readonly created_at: string | null;
  readonly modified_at: string | null;
  /** The listener that takes its events instead of the target. */
  readonly listener: string | null;
}

export interface ListedWebhookRoute extends WebhookRoute {
  readonly events: {
    readonly waiting: number;
    readonly delivered: number;
    readonly failed: number;
    readonly cancelled: number;
    readonly ignored: number;
  };
  readonly oldest_waiting_at: string | null;
  /** Of the last hour, at most the newest 2,000 of the source; null without one. */
  readonly recent_attempts: {
    readonly count: number;
    readonly failed: number;
    readonly p50_ms: number;
    readonly p95_ms: number;
  } | null;
}

export interface FilterExplanation {
  /** Null for filters that were given. */
  readonly route: string | null;
  readonly verdict: "match" | "mismatch" | "undecided";
  /** The verdict in words. */
  readonly because: string;
  readonly parts: readonly {
    readonly part: string;
    readonly verdict: "match" | "mismatch" | "undecided";
    readonly findings: readonly {
      readonly at: string;
      readonly condition: string;
      readonly found?: unknown;
      readonly holds: boolean;
    }[];
  }[];
}

export type RoutedEventState =
  | "scheduled"
  | "queued"
  | "held"
  | "delivered"
  | "failed"
  | "cancelled"
  | "ignored";

/** A delivery for one route. */
export interface RoutedEvent {
  readonly id: string;
  readonly source: string;
  readonly route: string;
  readonly delivery: string;
  readonly type: string;
  readonly entity: string | null;
  readonly received_at: string;
  readonly state: RoutedEventState;
  readonly reason: string | null;
  readonly attempts: number;
  readonly next_attempt_at: string | null;
  readonly is_attempting: boolean;
  /** The bulk replay that queued it last. */
  readonly replay: string | null;
  /** The issue that it belongs to since it failed. */
  readonly issue: string | null;
}

export interface EventAttempt {
  readonly id: string;
  readonly number: number;
  readonly trigger: "initial" | "automatic" | "manual" | "bulk";
  readonly started_at: string;
  readonly duration_ms: number;
  readonly outcome: "delivered" | "failed";
  readonly status: number | null;
  readonly error: string | null;
  /** Headers without credentials. */
  readonly request: {
    readonly method: string;
    readonly url: string;
    readonly headers: Readonly<Record<string, string>>;
  } | null;
  readonly response: {
    readonly headers: Readonly<Record<string, string>>;
    /** The first 4 KiB. */
    readonly body: string;
    readonly body_encoding: "utf8" | "base64";
  } | null;
}

export interface RoutedEventDetail extends RoutedEvent {
  readonly payload: {
    readonly content_type: string | null;
    readonly headers: Readonly<Record<string, string>>;
    readonly path: string;
    readonly body: string;
    readonly body_encoding: "utf8" | "base64";
  } | null;
  readonly attempt_list: readonly EventAttempt[];
}

interface EventFilters {
  readonly source?: string | undefined;
  readonly route?: string | undefined;
  readonly type?: string | undefined;
  readonly entity?: string | undefined;
  /** A part of the body. */
  readonly text?: string | undefined;
  /** ISO 8601. */
  readonly since?: string | undefined;
  readonly until?: string | undefined;
  readonly issue?: string | undefined;
}

export interface RoutedEventQuery extends EventFilters {
  readonly state?: RoutedEventState | undefined;
  readonly delivery?: string | undefined;
  readonly replay?: string | undefined;
  /** Page size, at most 100. */
  readonly limit?: number | undefined;
}

export interface EventReplayQuery extends EventFilters {
  /** Default `failed`. Ignored events are replayed if the filters match now. */
  readonly state?: "delivered" | "failed" | "cancelled" | "ignored" | undefined;
}

export interface EventReplayPlan {
  readonly count: number;
  readonly oldest: string | null;
  readonly newest: string | null;
  readonly routes: readonly { readonly source: string; readonly route: string; readonly count: number }[];
}

export interface EventReplay {
  readonly id: string;
  readonly query: EventReplayQuery;
  readonly state: "running" | "done" | "cancelled";
  readonly total: number;
  readonly queued: number;
  readonly skipped: number;
  readonly created_at: string;
  readonly ended_at: string | null;
}

export interface EventReplayDetail extends EventReplay {
  /** What has become of the queued events. */
  readonly results: {
    readonly waiting: number;
    readonly delivered: number;
    readonly failed: number;
    readonly cancelled: number;
  };
}

/** A delivery that has a name. */
export interface WebhookExample {
  readonly name: string;
  readonly source: string;
  readonly type: string;
  readonly entity: string | null;
  readonly body_bytes: number;
  readonly created_at: string;
}

/** Failed events of a route, grouped by cause. */
export interface WebhookIssue {
  readonly id: string;
  readonly source: string;
  readonly route: string;
  readonly cause: string;
  readonly state: "open" | "acknowledged" | "resolved";
  readonly count: number;
  readonly first_at: string;
  readonly last_at: string;
  /** The event that failed last. */
  readonly sample: string;
  readonly resolved_at: string | null;
}

export interface WebhookIssueQuery {
  readonly source?: string | undefined;
  readonly route?: string | undefined;
  readonly state?: WebhookIssue["state"] | undefined;
  readonly limit?: number | undefined;
}

/** A program that takes deliveries itself. */
export interface WebhookListener {
  readonly name: string;
  readonly routes: readonly {
    readonly source: string;
    readonly route: string;
    /** True for a route that the listener has taken. */
    readonly instead_of_target: boolean;
  }[];
  readonly waiting: number;
}

export interface ListenerSettings {
  /** Default: all sources of the account that have a secret. */
  readonly sources?: readonly string[] | undefined;
  readonly when?: RouteFilters | undefined;
  /** A route of the only source, whose target receives nothing meanwhile; without `when` and `since`. */
  readonly instead_of?: string | undefined;
  readonly since?: string | undefined;
}

/** An event for a listener, with all headers and the raw body (base64). */
export interface ListenedDelivery {
  readonly event: string;
  readonly attempt: number;
  readonly source: string;
  readonly route: string;
  readonly delivery: string;
  readonly type: string;
  readonly title: string;
  readonly entity: string | null;
  readonly received_at: string;
  /** Path and query of the sender's request. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface ListenerResult {
  readonly event: string;
  readonly attempt: number;
  readonly url: string;
  /** Null if there was no answer. */
  readonly status: number | null;
  readonly error: string | null;
  readonly duration_ms: number;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** The first 4 KiB of the answer, base64. */
  readonly body?: string | undefined;
}

/** Routes of sources, their events, bulk replays, examples and listeners. */
export class WebhookRoutingApi {
  readonly #transport: Transport;
  readonly #path: string;

  /** `path` is that of the account's webhooks. */
  constructor(transport: Transport, path: string) {
    this.#transport = transport;
    this.#path = path;
  }

  routes(source: string, options: RequestOptions = {}): List<ListedWebhookRoute> {
    return new List(this.#transport, this.#path + pathOf`/sources/${source}/routes`, {}, options);
  }

  async route(source: string, name: string, options: RequestOptions = {}): Promise<WebhookRoute> {
    return this.#transport.result("GET", this.#path + pathOf`/sources/${source}/routes/${name}`, options);
  }

  /** Creates a route or replaces the one of this name. */
  async putRoute(
    source: string,
    name: string,
    settings: RouteSettings,
    options: RequestOptions = {},
  ): Promise<WebhookRoute> {
    const path = this.#path + pathOf`/sources/${source}/routes/${name}`;
    return this.#transport.result("PUT", path, { body: settings, ...options });
  }

  /** Deletes a route; its events that wait are cancelled. */
  async deleteRoute(source: string, name: string, options: RequestOptions = {}): Promise<WebhookRoute> {
    return this.#transport.result("DELETE", this.#path + pathOf`/sources/${source}/routes/${name}`, options);
  }

  /** Events are kept until the route is resumed. */
  async pauseRoute(source: string, name: string, options: RequestOptions = {}): Promise<WebhookRoute> {
    return this.#transport.result(
      "POST",
      this.#path + pathOf`/sources/${source}/routes/${name}/pause`,
      options,
    );
  }

  async resumeRoute(source: string, name: string, options: RequestOptions = {}): Promise<WebhookRoute> {
    return this.#transport.result(
      "POST",
      this.#path + pathOf`/sources/${source}/routes/${name}/resume`,
      options,
    );
  }

  /** Compares a stored delivery with filters, or with those of all routes of the source. */
  async tryFilters(
    source: string,
    asked: { readonly delivery: string; readonly when?: RouteFilters | undefined },
    options: RequestOptions = {},
  ): Promise<readonly FilterExplanation[]> {
    const path = this.#path + pathOf`/sources/${source}/routes/try`;
    return this.#transport.result("POST", path, { body: asked, ...options });
  }

  /** Lists events, newest first. */
  events(query: RoutedEventQuery = {}, options: RequestOptions = {}): List<RoutedEvent> {
    return new List(this.#transport, `${this.#path}/events`, { ...query }, options);
  }

  async event(id: string, options: RequestOptions = {}): Promise<RoutedEventDetail> {
    return this.#transport.result("GET", this.#path + pathOf`/events/${id}`, options);
  }

  /** Queues an event that has ended. */
  async replayEvent(id: string, options: RequestOptions = {}): Promise<RoutedEvent> {
    return this.#transport.result("POST", this.#path + pathOf`/events/${id}/replay`, options);
  }

  async cancelEvent(id: string, options: RequestOptions = {}): Promise<RoutedEvent> {
    return this.#transport.result("POST", this.#path + pathOf`/events/${id}/cancel`, options);
  }

  /** Counts what `startReplay` would replay. */
  async planReplay(query: EventReplayQuery, options: RequestOptions = {}): Promise<EventReplayPlan> {
    const body = { ...query, dry_run: true };
    return this.#transport.result("POST", `${this.#path}/replays`, { body, ...options });
  }

  async startReplay(query: EventReplayQuery, options: RequestOptions = {}): Promise<EventReplay> {
    return this.#transport.result("POST", `${this.#path}/replays`, { body: query, ...options });
  }

  replays(options: RequestOptions = {}): List<EventReplay> {
    return new List(this.#transport, `${this.#path}/replays`, {}, options);
  }

  async replay(id: string, options: RequestOptions = {}): Promise<EventReplayDetail> {
    return this.#transport.result("GET", this.#path + pathOf`/replays/${id}`, options);
  }

  async cancelReplay(id: string, options: RequestOptions = {}): Promise<EventReplay> {
    return this.#transport.result("POST", this.#path + pathOf`/replays/${id}/cancel`, options);
  }

  examples(options: RequestOptions = {}): List<WebhookExample> {
    return new List(this.#transport, `${this.#path}/examples`, {}, options);
  }

  /** Gives a stored delivery a name. */
  async putExample(name: string, delivery: string, options: RequestOptions = {}): Promise<WebhookExample> {
    const path = this.#path + pathOf`/examples/${name}`;
    return this.#transport.result("PUT", path, { body: { delivery }, ...options });
  }

  async deleteExample(name: string, options: RequestOptions = {}): Promise<WebhookExample> {
    return this.#transport.result("DELETE", this.#path + pathOf`/examples/${name}`, options);
  }

  /** Processes a copy of the delivery as a new one. */
  async fireExample(
    name: string,
    options: RequestOptions = {},
  ): Promise<{ readonly status: number; readonly body: string; readonly delivery: string | null }> {
    return this.#transport.result("POST", this.#path + pathOf`/examples/${name}/fire`, options);
  }

  /** Lists issues; those that occurred last come first. */
  issues(query: WebhookIssueQuery = {}, options: RequestOptions = {}): List<WebhookIssue> {
    return new List(this.#transport, `${this.#path}/issues`, { ...query }, options);
  }

  async issue(id: string, options: RequestOptions = {}): Promise<WebhookIssue> {
    return this.#transport.result("GET", this.#path + pathOf`/issues/${id}`, options);
  }

  async acknowledgeIssue(id: string, options: RequestOptions = {}): Promise<WebhookIssue> {
    return this.#transport.result("POST", this.#path + pathOf`/issues/${id}/acknowledge`, options);
  }

  async resolveIssue(id: string, options: RequestOptions = {}): Promise<WebhookIssue> {
    return this.#transport.result("POST", this.#path + pathOf`/issues/${id}/resolve`, options);
  }

  /** Creates a listener, or changes it. */
  async putListener(
    name: string,
    settings: ListenerSettings,
    options: RequestOptions = {},
  ): Promise<WebhookListener & { readonly not_kept: number }> {
    return this.#transport.result("PUT", this.#listener(name), { body: settings, ...options });
  }

  async listener(name: string, options: RequestOptions = {}): Promise<WebhookListener> {
    return this.#transport.result("GET", this.#listener(name), options);
  }

  /** Removes a listener; its events are cancelled. */
  async deleteListener(name: string, options: RequestOptions = {}): Promise<void> {
    await this.#transport.result("DELETE", this.#listener(name), options);
  }

  /** Yields deliveries as they are due, and `null` as a sign of life, until the connection or the signal ends it. */
  async *listen(
    name: string,
    { max, sign }: { readonly max?: number | undefined; readonly sign?: boolean | undefined } = {},
    options: RequestOptions = {},
  ): AsyncGenerator<ListenedDelivery | null, void, undefined> {
    const query = new URLSearchParams();
    if (max !== undefined) query.set("max", String(max));
    if (sign !== undefined) query.set("sign", String(sign));
    const response = await this.#transport.raw(
      "GET",
      `${this.#listener(name)}/deliveries?${query.toString()}`,
      {
        timeoutMs: 0,
        ...options,
        headers: { accept: "text/event-stream" },
      },
    );
    if (response.body === null) return;
    for await (const { type, data } of readEventStream(response.body))
      yield type === "delivery" ? (JSON.parse(data) as ListenedDelivery) : null;
  }

  /** Reports answers; an event without a result is sent again. */
  async reportResults(
    name: string,
    results: readonly ListenerResult[],
    options: RequestOptions = {},
  ): Promise<{ readonly recorded: number }> {
    return this.#transport.result("POST", `${this.#listener(name)}/results`, {
      body: { results },
      ...options,
    });
  }

  #listener(name: string): string {
    return this.#path + pathOf`/listeners/${name}`;
  }
}
