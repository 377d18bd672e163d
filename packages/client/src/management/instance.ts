/** Management of one instance: what it stores, its work, its connections and its activity. */
import { readEventStream } from "./event-stream.ts";
import { List } from "./list.ts";
import { pathOf } from "./path.ts";
import type { RequestOptions, Transport } from "./transport.ts";

export interface Instance {
  readonly agent: string;
  readonly name: string;
  /** The name that a worker program gave its object; null for agents and for objects without a name. */
  readonly object_name: string | null;
  readonly created_at: string;
  readonly last_active_at: string;
  readonly in_memory: boolean;
  /** In a cluster, the name of the node that owns the instance; else null. */
  readonly node: string | null;
  readonly connection_count: number;
  /** Waiting queue items; 10,000 means that many or more. At most some seconds old, as the next three. */
  readonly queued: number;
  /** Queue items that have failed and wait for another attempt. */
  readonly retrying: number;
  /** 10,000 means that many or more. */
  readonly dead_letters: number;
  /** Name and message of the last error of the instance's code. */
  readonly last_error: string | null;
  readonly last_error_at: string | null;
  /** Since when a turn has been running; null for an instance that runs none. */
  readonly busy_since: string | null;
  readonly turn: RunningTurn | null;
  /** Events that wait for the running turn. */
  readonly waiting_turns: number;
  /** In lists of one agent: recorded turns in each twelfth of the last hour, the current one last. */
  readonly turns?: readonly number[];
  readonly turn_p95_ms?: number | null;
}

/** What a turn is about: `delivery`, `github push`. */
export interface RunningTurn {
  readonly kind: string;
  readonly label: string;
}

/** A turn of the instance's code that threw, or a start that failed. */
export interface InstanceFailure {
  readonly id: string;
  readonly at: string;
  readonly kind: string;
  readonly label: string;
  readonly name: string;
  readonly message: string;
  readonly stack: string | null;
}

export interface InstanceDetail extends Instance {
  readonly last_failure: InstanceFailure | null;
  readonly state: unknown;
  readonly queue_count: number;
  readonly dead_letter_count: number;
  readonly schedule_count: number;
  readonly next_due_at: string | null;
}

export interface LiveConnection {
  readonly id: string;
  readonly tags: readonly string[];
  readonly is_readonly: boolean;
  readonly uri: string;
}

/** An event in the life of an instance. */
export interface Activity {
  readonly type: string;
  readonly agent: string;
  readonly name: string;
  readonly timestamp: string;
  readonly detail: Readonly<Record<string, unknown>>;
}

/** A turn of an instance, as the timeline records it for a day. */
export interface RecordedTurn {
  readonly id: string;
  /** When the turn began. */
  readonly at: string;
  readonly duration_ms: number;
  readonly kind: string;
  /** What ran: a method, the type of an event, a path. */
  readonly label: string;
  /** The id of the event, of the queue item or of the schedule. */
  readonly reference: string | null;
  readonly error: string | null;
  /** The turn set the state. */
  readonly changes_state: boolean;
  /** Turns between the record before and this one that were not recorded, because there were too many. */
  readonly skipped: number;
}

export interface RecordedTurnDetail extends RecordedTurn {
  /** JSON text of bounded length; `…` marks what is left out. */
  readonly payload: string | null;
  readonly state: {
    /** Values are JSON text of bounded length; null for a member that was added or removed. */
    readonly changes: readonly {
      readonly path: readonly string[];
      readonly before: string | null;
      readonly after: string | null;
    }[];
    readonly truncated: boolean;
  } | null;
  readonly stack: string | null;
}

export interface TimelineQuery {
  readonly kind?: string;
  readonly failed?: boolean;
  readonly limit?: number;
}

/** The number of activities that the service dropped because the reader was too slow. */
export interface MissedActivities {
  readonly missed: number;
}

export interface SqlResult {
  readonly rows: readonly Readonly<Record<string, unknown>>[];
  /** True if the result has more rows than are returned. */
  readonly truncated: boolean;
}

export interface QueueItem {
  readonly id: string;
  readonly callback: string;
  readonly payload: unknown;
  readonly attempts: number;
  readonly created_at: string;
  readonly next_attempt_at: string;
  readonly last_error: string | null;
  /** An attempt is in progress. */
  readonly running: boolean;
}

/** A queue item or scheduled call that failed in all of its attempts. */
export interface DeadLetter {
  readonly id: string;
  readonly item_id: string;
  readonly origin: "queue" | "schedule";
  readonly callback: string;
  readonly payload: unknown;
  readonly attempts: number;
  readonly error: string;
  readonly created_at: string;
  readonly failed_at: string;
}

export interface Schedule {
  readonly id: string;
  readonly type: "scheduled" | "delayed" | "cron" | "interval";
  readonly callback: string;
  readonly payload: unknown;
  readonly due_at: string;
  readonly cron: string | null;
  readonly interval_seconds: number | null;
  /** Attempts of the current run so far. */
  readonly attempts: number;
  readonly running: boolean;
}

/** Management of one instance. To call its methods, open a connection with `client.agent`. */
export class InstanceApi {
  readonly #transport: Transport;
  readonly #path: string;

  constructor(transport: Transport, path: string) {
    this.#transport = transport;
    this.#path = path;
  }

  async get(options: RequestOptions = {}): Promise<InstanceDetail> {
    return this.#transport.result<InstanceDetail>("GET", this.#path, options);
  }

  /** Deletes the instance and everything it stored. */
  async destroy(options: RequestOptions = {}): Promise<Pick<Instance, "agent" | "name">> {
    return this.#transport.result<Pick<Instance, "agent" | "name">>("DELETE", this.#path, options);
  }

  /** Lists the nodes to which the instance can move; none without a cluster. */
  async moveTargets(options: RequestOptions = {}): Promise<readonly { id: string; name: string }[]> {
    return this.#transport.result("GET", `${this.#path}/move`, options);
  }

  /** Moves the instance to another node of the cluster: a name or id of a node; default: the service selects one. */
  async move(
    to?: string,
    options: RequestOptions = {},
  ): Promise<Pick<Instance, "agent" | "name"> & { readonly node: string }> {
    const request = { body: to === undefined ? {} : { to }, ...options };
    return this.#transport.result("POST", `${this.#path}/move`, request);
  }

  /** Lists the waiting queue items, oldest first. */
  queue(query: { limit?: number | undefined } = {}, options: RequestOptions = {}): List<QueueItem> {
    return new List(this.#transport, `${this.#path}/queue`, query, options);
  }

  deadLetters(query: { limit?: number | undefined } = {}, options: RequestOptions = {}): List<DeadLetter> {
    return new List(this.#transport, `${this.#path}/dead-letters`, query, options);
  }

  /** Removes a waiting item; a running one is refused with `conflict`. */
  async removeQueueItem(id: string, options: RequestOptions = {}): Promise<void> {
    await this.#transport.request("DELETE", this.#path + pathOf`/queue/${id}`, options);
  }

  /** Moves a waiting item to the front of the queue, and ends its delay. */
  async runQueueItem(id: string, options: RequestOptions = {}): Promise<void> {
    await this.#transport.request("POST", this.#path + pathOf`/queue/${id}/run`, { body: {}, ...options });
  }

  async removeSchedule(id: string, options: RequestOptions = {}): Promise<void> {
    await this.#transport.request("DELETE", this.#path + pathOf`/schedules/${id}`, options);
  }

  /** Runs a schedule now; a recurring one keeps its next time. */
  async runSchedule(id: string, options: RequestOptions = {}): Promise<void> {
    await this.#transport.request("POST", this.#path + pathOf`/schedules/${id}/run`, {
      body: {},
      ...options,
    });
  }

  /** Returns the dead letters with these ids (at most 1,000), by default all (at most 10,000 with each call), to the queue. Resolves to their number. */
  async replayDeadLetters(ids?: readonly string[], options: RequestOptions = {}): Promise<number> {
    const request = { body: ids === undefined ? {} : { ids }, ...options };
    const path = `${this.#path}/dead-letters/replay`;
    return (await this.#transport.result<{ replayed: number }>("POST", path, request)).replayed;
  }

  async discardDeadLetter(id: string, options: RequestOptions = {}): Promise<void> {
    await this.#transport.request("DELETE", this.#path + pathOf`/dead-letters/${id}`, options);
  }

  /** Discards all dead letters, at most 10,000 with each call. */
  async discardDeadLetters(
    options: RequestOptions = {},
  ): Promise<{ readonly discarded: number; readonly remaining: number }> {
    return this.#transport.result("DELETE", `${this.#path}/dead-letters`, options);
  }

  schedules(options: RequestOptions = {}): List<Schedule> {
    return new List(this.#transport, `${this.#path}/schedules`, {}, options);
  }

  connections(options: RequestOptions = {}): List<LiveConnection> {
    return new List(this.#transport, `${this.#path}/connections`, {}, options);
  }

  /** Lists the latest events, newest first. */
  events(options: RequestOptions = {}): List<Activity> {
    return new List(this.#transport, `${this.#path}/events`, {}, options);
  }

  /** Lists the recorded turns of the last day, newest first. */
  timeline(query: TimelineQuery = {}, options: RequestOptions = {}): List<RecordedTurn> {
    return new List(this.#transport, `${this.#path}/timeline`, { ...query }, options);
  }

  /** Reads a recorded turn with its payload, state changes and stack. */
  turn(id: string, options: RequestOptions = {}): Promise<RecordedTurnDetail> {
    return this.#transport.result("GET", `${this.#path}/timeline${pathOf`/${id}`}`, options);
  }

  /** Yields events as they occur, until the service closes the stream or the signal aborts. Has no timeout by default. */
  async *follow(options: RequestOptions = {}): AsyncGenerator<Activity | MissedActivities, void, undefined> {
    const response = await this.#transport.raw("GET", `${this.#path}/events`, {
      timeoutMs: 0,
      ...options,
      headers: { accept: "text/event-stream" },
    });
    if (response.body === null) return;
    for await (const { type, data } of readEventStream(response.body)) {
      yield type === "missed" ? { missed: Number(data) } : (JSON.parse(data) as Activity);
    }
  }

  /** Runs one read-only statement on a copy of the instance's database. */
  async sql(text: string, options: RequestOptions = {}): Promise<SqlResult> {
    return this.#transport.result<SqlResult>("POST", `${this.#path}/sql`, {
      body: { sql: text },
      ...options,
    });
  }
}
