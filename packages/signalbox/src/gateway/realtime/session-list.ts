/**
 * The open sessions. A timer closes those that are too old, idle or stalled, pings their clients, and keeps the memory of all sessions within a
 * limit: when they hold more, the one that holds the most is closed.
 */
import { type Share, SharedPlaces } from "../../core/shared-pool.ts";
import type { GatewayMetrics } from "../metrics.ts";
import type { Gateway } from "../settings/gateway.ts";
import type { Session } from "./session.ts";

export interface SessionLimits {
  readonly maxSessions: number;
  readonly maxSessionMs: number;
  readonly idleTimeoutMs: number;
  /** How long a side may not read. */
  readonly stallTimeoutMs: number;
  /** Memory of all sessions. */
  readonly maxBufferedBytes: number;
}

const CHECK_MS = 1000;
/** Every so many checks. Proxies close connections without traffic after a minute. */
const PING_EVERY = 30;
const GOING_AWAY = 1001;
const POLICY = 1008;
const TRY_AGAIN_LATER = 1013;

export class SessionList {
  readonly #limits: SessionLimits;
  readonly #metrics: GatewayMetrics;
  /** With the place that each has. */
  readonly #sessions = new Map<Session, Share>();
  /** Handshakes under way have a place, too. */
  readonly #places: SharedPlaces;
  #timer: NodeJS.Timeout | undefined;
  #checks = 0;
  #isClosed = false;

  constructor(limits: SessionLimits, metrics: GatewayMetrics) {
    this.#limits = limits;
    this.#places = new SharedPlaces(limits.maxSessions);
    this.#metrics = metrics;
  }

  get isStopping(): boolean {
    return this.#isClosed;
  }

  /** A place for another session of the holder; null when there is none. `opened` must be called once with it. */
  reserve(holder: string): Share | null {
    const place = this.#places.shareOf(holder);
    return !this.#isClosed && place.take() ? place : null;
  }

  /** The handshake has ended; `session` is null when it failed. */
  opened(session: Session | null, place: Share): void {
    if (session === null) {
      place.release();
      return;
    }
    this.#sessions.set(session, place);
    this.#metrics.sessions = this.#sessions.size;
    // Opened while the service stops, or ended during the handshake.
    if (session.isEnded) this.ended(session);
    else if (this.#isClosed) session.end("stopping", GOING_AWAY, "The server is stopping");
    else this.#timer ??= setInterval(() => this.check(performance.now()), CHECK_MS);
  }

  ended(session: Session): void {
    this.#sessions.get(session)?.release();
    this.#sessions.delete(session);
    this.#metrics.sessions = this.#sessions.size;
    if (this.#sessions.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  close(): void {
    this.#isClosed = true;
    for (const session of this.#sessions.keys())
      session.end("stopping", GOING_AWAY, "The server is stopping");
  }

  endOf(gateway: Pick<Gateway, "accountId" | "id">, code: number, reason: string): void {
    for (const session of this.#sessions.keys())
      if (session.belongsTo(gateway)) session.end("gateway", code, reason);
  }

  check(now: number): void {
    const { maxSessionMs, idleTimeoutMs, stallTimeoutMs, maxBufferedBytes } = this.#limits;
    this.#checks += 1;
    let held = 0;
    let largest: Session | null = null;
    for (const session of this.#sessions.keys()) {
      if (now - session.startedAt >= maxSessionMs) {
        session.end("time", POLICY, `The session reached its limit of ${maxSessionMs / 1000} s`);
      } else if (now - session.lastMessageAt >= idleTimeoutMs) {
        session.end("idle", POLICY, `No message for ${idleTimeoutMs / 1000} s`);
      } else if (session.stalledSince !== null && now - session.stalledSince >= stallTimeoutMs) {
        session.drop("stalled");
      } else if (this.#checks % PING_EVERY === 0) {
        if (session.isAlive) session.ping();
        else session.drop("stalled");
      }
      if (session.isEnded) continue;
      held += session.bufferedBytes;
      if (largest === null || session.bufferedBytes > largest.bufferedBytes) largest = session;
    }
    if (held > maxBufferedBytes)
      largest?.end("memory", TRY_AGAIN_LATER, "The gateway is out of memory for sessions");
  }
}
