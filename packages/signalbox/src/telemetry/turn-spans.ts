/**
 * Spans of webhook deliveries and of agents' turns, with the SQL and the outgoing calls of a turn below it. A turn belongs to the trace of what
 * caused it: a delivery, a request, the handshake of a connection, or the call of another agent. Loaded when the whole service sends telemetry; without it, the code of agents compares with null.
 */
import { currentTurn, type Turn } from "../engines/turn-runtime/index.ts";
import { type Attributes, randomSpanId, type Span, SpanKind } from "../engines/otlp-export/index.ts";
import { toTraceparent } from "./trace-context.ts";
import { type SpanPlace, toEpochMs, type Tracing } from "./tracing.ts";

/** More statements of a turn are counted, not sent: a loop over rows must not fill the queue. */
const MAX_CHILDREN = 128;
const MAX_QUERY_CHARACTERS = 2048;

interface TurnTrace {
  readonly place: SpanPlace;
  /** Whether the turn answers a request of another program. */
  readonly isServer: boolean;
  readonly children: Span[];
  dropped: number;
}

/** What may have caused a turn, as far as its trace depends on it. */
interface Cause {
  readonly connection?: object | undefined;
  readonly request?: Request | undefined;
  /** Of the agent that called. */
  readonly traceparent?: string | undefined;
}

export interface TurnOwner {
  readonly account: string;
  readonly agent: string;
  readonly name: string;
}

export interface EndedDelivery {
  readonly source: string;
  readonly type: string;
  readonly deliveryId: string;
  readonly status: string;
  readonly httpStatus: number;
  /** Of `performance.now()`. */
  readonly startedAt: number;
}

export class TurnSpans {
  readonly #tracing: Tracing;
  readonly #turns = new WeakMap<Turn, TurnTrace>();
  /** The span that caused what an event or request does. */
  readonly #causes = new WeakMap<object, SpanPlace>();
  /** The `traceparent` of the handshake of a connection. */
  readonly #handshakes = new WeakMap<object, string>();

  constructor(tracing: Tracing) {
    this.#tracing = tracing;
  }

  place(traceparent: string | string[] | undefined): SpanPlace {
    return this.#tracing.place(typeof traceparent === "string" ? traceparent : undefined);
  }

  /** Turns that handle `event` belong below `place`. */
  bind(event: object, place: SpanPlace): void {
    this.#causes.set(event, place);
  }

  deliveryEnded(place: SpanPlace, delivery: EndedDelivery): void {
    const isFailed = delivery.httpStatus >= 400;
    this.#add(place, {
      name: `webhook ${delivery.source}`,
      kind: SpanKind.server,
      startedAt: delivery.startedAt,
      attributes: [
        "http.request.method",
        "POST",
        "http.response.status_code",
        delivery.httpStatus,
        "signalbox.webhook.source",
        delivery.source,
        "signalbox.webhook.event_type",
        delivery.type,
        "signalbox.webhook.delivery_id",
        delivery.deliveryId,
        "signalbox.webhook.status",
        delivery.status,
        ...(isFailed ? ["error.type", String(delivery.httpStatus)] : []),
      ],
      error: isFailed ? delivery.status : null,
    });
  }

  turnEnded(turn: Turn, { account, agent, name }: TurnOwner, error: unknown): void {
    const { place, isServer, children, dropped } = this.#traceOf(turn);
    this.#turns.delete(turn);
    if (!place.isRecorded) return;
    const failure = error === null ? null : error instanceof Error ? error.message : "not an error";
    const span = this.#toSpan(place, {
      name: `turn ${turn.kind} ${agent}`,
      kind: isServer ? SpanKind.server : SpanKind.internal,
      startedAt: turn.startedAt,
      attributes: [
        "gen_ai.agent.name",
        agent,
        "gen_ai.agent.id",
        `${account}/${agent}/${name}`,
        "signalbox.turn.kind",
        turn.kind,
        "signalbox.turn.label",
        turn.label,
        ...(dropped > 0 ? ["signalbox.turn.dropped_spans", dropped] : []),
        ...(error === null ? [] : ["error.type", error instanceof Error ? error.name : "unknown"]),
      ],
      error: failure,
    });
    this.#tracing.add(this.#tracing.receivers, () => [span, ...children]);
  }

  /** Runs a statement of the current turn. */
  sql<T>(parts: readonly string[], run: () => T): T {
    const turn = currentTurn();
    if (turn === undefined || turn === null) return run();
    const startedAt = performance.now();
    let error: string | null = null;
    try {
      return run();
    } catch (thrown) {
      error = thrown instanceof Error ? thrown.message : String(thrown);
      throw thrown;
    } finally {
      const text = parts.join("?").trim().slice(0, MAX_QUERY_CHARACTERS);
      const operation = /^\w+/.exec(text)?.[0]?.toUpperCase() ?? "SQL";
      const attributes = ["db.system.name", "sqlite", "db.query.text", text, "db.operation.name", operation];
      this.#addChild(turn, { name: operation, kind: SpanKind.client, startedAt, attributes, error });
    }
  }

  /** Runs an outgoing call of the current turn. The receiver may continue the trace with the `traceparent`. */
  async outgoing<T>(
    name: string,
    attributes: Attributes,
    run: (traceparent: string | undefined) => Promise<T>,
  ): Promise<T> {
    const turn = currentTurn();
    if (turn === undefined || turn === null) return run(undefined);
    const own = placeBelow(this.#traceOf(turn).place);
    const startedAt = performance.now();
    let error: string | null = null;
    try {
      return await run(toTraceparent({ ...own, isSampled: own.isRecorded }));
    } catch (thrown) {
      error = thrown instanceof Error ? thrown.message : String(thrown);
      throw thrown;
    } finally {
      this.#addChild(turn, { name, kind: SpanKind.client, startedAt, attributes, error }, own);
    }
  }

  #addChild(turn: Turn, span: UnplacedSpan, own?: SpanPlace): void {
    const trace = this.#traceOf(turn);
    const { place, children } = trace;
    if (!place.isRecorded) return;
    if (children.length >= MAX_CHILDREN) {
      trace.dropped += 1;
      return;
    }
    children.push(this.#toSpan(own ?? placeBelow(place), span));
  }

  #traceOf(turn: Turn): TurnTrace {
    let trace = this.#turns.get(turn);
    if (trace === undefined) this.#turns.set(turn, (trace = this.#begin(turn)));
    return trace;
  }

  #begin(turn: Turn): TurnTrace {
    const bound = turn.cause === null ? undefined : this.#causes.get(turn.cause);
    if (bound !== undefined) return { place: placeBelow(bound), isServer: false, children: [], dropped: 0 };
    // Requests are converted when they are read, so they are read only here.
    const { connection, request, traceparent } = (turn.origin ?? NO_CAUSE) as Cause;
    const caller = request?.headers.get("traceparent") ?? traceparentOf(turn.cause);
    if (connection !== undefined && caller !== undefined) this.#handshakes.set(connection, caller);
    const handshake = connection === undefined ? undefined : this.#handshakes.get(connection);
    return {
      place: this.#tracing.place(traceparent ?? caller ?? handshake),
      isServer: connection !== undefined || request !== undefined,
      children: [],
      dropped: 0,
    };
  }

  #add(place: SpanPlace, span: UnplacedSpan): void {
    if (!place.isRecorded) return;
    const placed = this.#toSpan(place, span);
    this.#tracing.add(this.#tracing.receivers, () => [placed]);
  }

  #toSpan({ traceId, spanId, parentSpanId }: SpanPlace, span: UnplacedSpan): Span {
    const { name, kind, startedAt, attributes, error } = span;
    const startMs = toEpochMs(startedAt);
    const endMs = toEpochMs(performance.now());
    return { traceId, spanId, parentSpanId, name, kind, startMs, endMs, attributes, error };
  }
}

const NO_CAUSE: Cause = {};

/** Of an event that arrived at another node, or earlier: its delivery has a span there. */
function traceparentOf(
  event: { readonly headers?: Readonly<Record<string, unknown>> } | null,
): string | undefined {
  const value = event?.headers?.["traceparent"];
  return typeof value === "string" ? value : undefined;
}

function placeBelow({ traceId, spanId, isRecorded }: SpanPlace): SpanPlace {
  return { traceId, spanId: randomSpanId(), parentSpanId: spanId, isRecorded };
}

interface UnplacedSpan {
  readonly name: string;
  readonly kind: Span["kind"];
  readonly startedAt: number;
  readonly attributes: Attributes;
  readonly error: string | null;
}
