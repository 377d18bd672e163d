/**
 * The connections that are parsed here: accepts them, checks their time limits in one sweep, and passes those with other requests to
 * node:http.
 *
 * Invariants:
 * 1. A time limit never ends early; it is noticed at the next sweep. Time in which this process was paused does not count.
 * 2. A connection is here, or at node:http, or closed.
 */
import { AsyncResource } from "node:async_hooks";
import type { Socket } from "node:net";
import { PlaceList } from "../../core/place-list.ts";
import type { HttpApplication, ListenerLimits } from "./application.ts";
import type { OpenConnection } from "./connection-room.ts";
import { PlainConnection, type PlainListener } from "./plain-connection.ts";
import type { ListenerState } from "./tracking.ts";

/** node:http counts less than the whole head. */
const MAX_HEAD_BYTES = 16 * 1024;
/** A sweep that is late by so much follows a pause of this process. */
const MIN_PAUSE_MS = 500;
/** A client may send its next request in the last moment of the time that it was told. */
const IDLE_GRACE_MS = 1000;

export class PlainConnections implements PlainListener {
  readonly application: HttpApplication;
  readonly state: ListenerState;
  readonly maxHeadBytes: number;
  readonly headerTimeoutMs: number;
  readonly bodyTimeoutMs: number;
  readonly idleTimeoutMs: number;
  readonly keepAliveLine: string;
  isDrained = false;
  readonly #attach: (socket: Socket) => void;
  readonly #connections = new PlaceList<PlainConnection>();
  readonly #outside = new AsyncResource("SIGNALBOX_CONNECTIONS");
  readonly #sweepMs: number;
  #timer: NodeJS.Timeout | undefined;
  #sweptAt = 0;
  #pausedMs = 0;

  /** `attach` gives a connection to node:http. */
  constructor(
    application: HttpApplication,
    state: ListenerState,
    limits: ListenerLimits,
    sweepMs: number,
    attach: (socket: Socket) => void,
  ) {
    this.application = application;
    this.state = state;
    this.maxHeadBytes = Math.min(limits.maxHeaderBytes, MAX_HEAD_BYTES);
    this.headerTimeoutMs = limits.headerTimeoutMs;
    this.bodyTimeoutMs = limits.bodyTimeoutMs;
    this.idleTimeoutMs = limits.idleTimeoutMs + IDLE_GRACE_MS;
    this.keepAliveLine = `Keep-Alive: timeout=${Math.floor(limits.idleTimeoutMs / 1000)}\r\n`;
    this.#attach = attach;
    this.#sweepMs = sweepMs;
  }

  get now(): number {
    return performance.now() - this.#pausedMs;
  }

  accept(socket: Socket): void {
    if (this.#timer === undefined) {
      this.#sweptAt = performance.now();
      this.#timer = setInterval(() => this.#sweep(), this.#sweepMs).unref();
    }
    this.#connections.add(new PlainConnection(socket, this));
  }

  handOver(connection: PlainConnection, socket: Socket, bytes: Buffer): void {
    this.#connections.delete(connection);
    this.outside(() => {
      // Paused, so that the bytes flow when node:http listens to them, and not before.
      socket.pause();
      socket.unshift(bytes);
      this.#attach(socket);
      socket.resume();
    });
  }

  outside(task: () => void): void {
    this.#outside.runInAsyncScope(task);
  }

  closed(connection: PlainConnection): void {
    this.#connections.delete(connection);
  }

  /** Closes idle connections, and every other one as soon as it is idle. */
  drain(): void {
    this.isDrained = true;
    for (const connection of this.#connections.all()) connection.closeIfIdle();
  }

  all(): OpenConnection[] {
    const { now } = this;
    return this.#connections.all().map((connection) => {
      const { socket, since } = connection;
      return { socket, waitingSince: connection.isWaiting(now) ? since + this.#pausedMs : null };
    });
  }

  #sweep(): void {
    const connections = this.#connections.all();
    if (connections.length === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
      return;
    }
    // After a pause, timers run before the sockets are read.
    const at = performance.now();
    const lateMs = at - this.#sweptAt - this.#sweepMs;
    if (lateMs > MIN_PAUSE_MS) this.#pausedMs += lateMs;
    this.#sweptAt = at;
    const { now } = this;
    for (const connection of connections) connection.check(now);
  }
}
