/**
 * Runs `onClose` for connections that have closed. Sockets stay open while their instances are not in memory, so a proxy that restarts can
 * close thousands of connections at once whose instances have to be loaded.
 *
 * Invariants:
 * 1. An instance is loaded only for an agent that has an `onClose`.
 * 2. At most `MAX_WAKING` instances are loaded at a time for this; the others wait in order, at most `MAX_WAITING` of them. They also wait
 *    while no instance can be opened (`overloaded`), for a limited time.
 * 3. An `onClose` that does not run is counted (`signalbox_agent_lost_closes_total`) and logged; the log lines are limited.
 */
import { SignalboxError } from "@signalbox/protocol";
import type { Logger } from "../../telemetry/logger.ts";
import type { AgentDefinition } from "../instance/agent-definition.ts";
import type { Directory } from "../instance/directory.ts";
import type { Instance } from "../instance/instance.ts";
import { closed, isElsewhere } from "./connection-turns.ts";
import type { LiveConnection } from "../connections/live-connection.ts";

export interface Departure {
  readonly definition: AgentDefinition;
  readonly account: string;
  readonly name: string;
  readonly connection: LiveConnection;
  readonly code: number;
  readonly reason: string;
  /** Calls back when `onClose` has ended or is not needed; false: it certainly did not run, because the instance is at another node. */
  readonly onLeft?: ((hasRun: boolean) => void) | undefined;
}

export interface DeparturesParts {
  readonly directory: Pick<Directory, "get" | "find">;
  readonly logger: Logger;
  /** Counts the connections whose `onClose` did not run. */
  readonly lost: { add(count: number): void };
}

/** Enough to keep the disk busy, and few enough that other instances stay in memory. */
const MAX_WAKING = 16;
/** Twice the default limit of connections of a listener; each entry takes a few kilobytes. */
const MAX_WAITING = 20_000;
/** Between attempts to open an instance while the runtime is overloaded. */
const PAUSE_MS = 100;
/** One minute of failed attempts: an overload that lasts longer will not end soon. */
const MAX_PAUSES = 600;
/** Between log lines. */
const NOTICE_MS = 10_000;

export class Departures {
  readonly #parts: DeparturesParts;
  #waiting: Departure[] = [];
  #head = 0;
  #waking = 0;
  /** Failed attempts since the last success. */
  #pauses = 0;
  #timer: NodeJS.Timeout | undefined;
  #unreported = 0;
  #reportedAt = Number.NEGATIVE_INFINITY;

  constructor(parts: DeparturesParts) {
    this.#parts = parts;
  }

  add(departure: Departure): void {
    const { definition, account, name, connection, code } = departure;
    if (!connection.isJoined) {
      departure.onLeft?.(true);
      return;
    }
    const { directory } = this.#parts;
    const inMemory = directory.find({ account, agent: definition.kebab, name });
    if (!definition.hasCloseHook && connection.listeners?.has("close") !== true) {
      inMemory?.recordDisconnect(connection.id, code);
      departure.onLeft?.(true);
      return;
    }
    if (inMemory !== undefined) this.#close(directory.get(definition, account, name), departure);
    else if (this.#waiting.length - this.#head >= MAX_WAITING) {
      this.#lose(1, "too many are waiting");
      departure.onLeft?.(true);
    } else {
      this.#waiting.push(departure);
      this.#wake();
    }
  }

  /** Counts what still waits as lost. */
  stop(): void {
    clearTimeout(this.#timer);
    const waiting = this.#waiting.slice(this.#head);
    this.#waiting = [];
    this.#head = 0;
    const count = waiting.length;
    if (count > 0) this.#lose(count, "the server is stopping");
  }

  #wake(): void {
    while (this.#timer === undefined && this.#waking < MAX_WAKING) {
      const departure = this.#waiting[this.#head];
      if (departure === undefined) break;
      let instance: Instance;
      try {
        const { definition, account, name } = departure;
        instance = this.#parts.directory.get(definition, account, name);
      } catch (error) {
        if (isOverload(error) && this.#pauses < MAX_PAUSES) {
          this.#pause();
          return;
        }
        this.#shift();
        this.#fail(departure, error);
        continue;
      }
      this.#shift();
      this.#pauses = 0;
      this.#waking += 1;
      this.#close(instance, departure, () => {
        this.#waking -= 1;
        this.#wake();
      });
    }
  }

  #pause(): void {
    this.#pauses += 1;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#wake();
    }, PAUSE_MS).unref();
  }

  #shift(): void {
    this.#head += 1;
    if (this.#head === this.#waiting.length) this.#waiting = [];
    else if (this.#head > 1024) this.#waiting = this.#waiting.slice(this.#head);
    else return;
    this.#head = 0;
  }

  #close(instance: Instance, departure: Departure, onEnd?: () => void): void {
    const { connection, code, reason, onLeft } = departure;
    closed(instance, connection, code, reason)
      // What `onClose` wrote counts only if this node still has the instance.
      .then(() => (onLeft === undefined ? undefined : instance.passGate()))
      .then(
        () => onLeft?.(true),
        (error: unknown) => this.#fail(departure, error),
      )
      .finally(onEnd);
  }

  #fail({ onLeft }: Departure, error: unknown): void {
    const known = error instanceof SignalboxError ? error : null;
    if (onLeft !== undefined && (isElsewhere(error) || known?.id === "stopping")) {
      onLeft(false);
      return;
    }
    // The instance logs errors of the handler itself; a destroyed instance needs no `onClose`.
    if (known !== null && known.id !== "agent_destroyed") this.#lose(1, known.message);
    onLeft?.(true);
  }

  #lose(count: number, reason: string): void {
    this.#parts.lost.add(count);
    this.#unreported += count;
    const now = performance.now();
    if (now - this.#reportedAt < NOTICE_MS) return;
    this.#reportedAt = now;
    this.#parts.logger.warn(
      { reason, count: this.#unreported },
      "onClose did not run for closed connections",
    );
    this.#unreported = 0;
  }
}

function isOverload(error: unknown): boolean {
  return error instanceof SignalboxError && error.id === "overloaded";
}
