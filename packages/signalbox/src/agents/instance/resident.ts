/**
 * What an instance runs: an object of the user's class with what belongs to it while the database is open. Native agents (`LiveAgent`) and
 * objects (`objects/live-object.ts`) are residents; everything below them (store, turns, outputs, catalog, waker, sockets) is the same.
 */
import type { InstanceDatabase } from "../../engines/instance-store/index.ts";
import type { TimerOwner, TurnOrigin, TurnRuntime } from "../../engines/turn-runtime/index.ts";
import type { ConnectionGroup } from "../connections/connection-group.ts";
import type { Activity } from "./activity.ts";
import type { InstanceFigures } from "./instance-figures.ts";
import type { InstanceReader } from "./inspection.ts";
import type { InstanceEnvironment } from "./instance-environment.ts";
import type { InstanceRef } from "./instance-ref.ts";
import type { InstanceReports } from "./instance-reports.ts";
import type { SerialByKey } from "../../core/serial.ts";

export interface Resident {
  readonly database: InstanceDatabase;
  /** The object of the user's class, for `getCurrentAgent`; undefined before it exists. */
  readonly object?: object | undefined;
  /** For the management interface. */
  readonly reader: InstanceReader;
  /** True when the resident runs no work of its own. */
  readonly isIdle: boolean;
  /** True while a client is connected through a WebSocket of the resident's own. */
  readonly hasClients?: boolean;
  /** True when nothing that is stored is worth keeping: the instance that leaves memory is removed. Read before the database is closed. */
  readonly isDisposable?: boolean;
  /** The first turn: constructs the object of the user's class. */
  start(): void | Promise<void>;
  /** The first turn has succeeded: the resident may begin work of its own. */
  ready(): void;
  /** The wall clock was set: work of its own may be due. */
  clockChanged(): void;
  /** Nothing runs or waits any more. */
  idle?(): void;
  /** The instance leaves memory: no more work of its own begins. `hasFailed`: its storage failed, and what it sent last has not left. */
  stop(hasFailed?: boolean): void;
  /** Null when the class has no hook for errors of its turns; else calls it, in a turn. `origin` is that of the turn that failed. */
  readonly errorHook: ((cause: unknown, origin: TurnOrigin | null) => unknown) | null;
}

export interface ResidentParts<R extends Resident> {
  readonly ref: InstanceRef;
  readonly environment: InstanceEnvironment;
  readonly group: ConnectionGroup;
  readonly activity: Activity;
  readonly database: InstanceDatabase;
  /** Has the database. */
  readonly runtime: TurnRuntime<R>;
  /** The storage ended the predecessor, in this process: what ran then has not failed. */
  readonly isResumed: boolean;
  readonly reports: InstanceReports;
  /** Keeps copies of one delivery apart; null when turns do not overlap, so that copies cannot. */
  readonly deliveries: SerialByKey | null;
  /** The time of the next due work is known or has changed; null when there is none. */
  readonly onDue: (at: number | null) => void;
  /** Null if that time is stored; otherwise it is when the promise resolves. When it rejects, the instance leaves memory. */
  readonly whenDueStored: () => Promise<void> | null;
  /** The numbers of the resident's work, for lists. */
  readonly figures: InstanceFigures;
  /** No work of its own runs any more. */
  readonly onIdle: () => void;
  /** A hook failed that must not fail its turn. */
  readonly onHookError: (error: unknown, hook: string) => void;
  readonly requestDestroy: () => Promise<void>;
  /** The owner of the turns: keeps the instance in memory, and sends what has to wait for the writes. */
  readonly holder: Holder;
  /** Ends the instance at once: running turns fail with the reason, and the next event starts the instance again. */
  readonly abort: (reason: Error) => void;
}

export interface Holder extends TimerOwner {
  hold(): () => void;
  waitUntil(work: Promise<unknown>): void;
  output(release: () => void): void;
  passGate(): Promise<void>;
  enter<T>(label: string, body: () => T | Promise<T>): Promise<T>;
}

/** A class of residents as the directory sees it. */
export interface ResidentDefinition<R extends Resident> {
  /** Name in URLs and in the catalog. */
  readonly kebab: string;
  readonly initialSchema: string;
  /** Turns may start while others are at an await. */
  readonly isInterleaving: boolean;
  /** A turn that fails keeps what it wrote. */
  readonly keepsFailedWrites: boolean;
  /** Turns are recorded in the timeline. */
  readonly isRecorded: boolean;
  /** Time limit of turns; 0 for none, undefined for the limit of the service. */
  readonly turnTimeoutMs: number | undefined;
  /** While a node gives its instances away: how long one with work keeps its code, before its turns are interrupted. Undefined: for the grace period of a hand-over. */
  readonly updateDelayMs?: number | undefined;
  /** Called before the resident is created. Null: the database stays; otherwise it has been closed, and another one opened. */
  prepare?(database: InstanceDatabase, ref: InstanceRef): Promise<InstanceDatabase> | null;
  create(parts: ResidentParts<R>): R;
}
