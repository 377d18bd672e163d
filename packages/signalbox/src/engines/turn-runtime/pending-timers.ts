/**
 * Timers that the code of an instance has set, and that have neither fired nor been cleared. Nobody need await what such a timer continues, so it is
 * the only sign that the code goes on: with a client, the instance stays in memory for it.
 *
 * The body of a response that the code may still be reading is such a sign, too (`noteBody`).
 *
 * Timers of the service that are set while code of an instance runs count too, because nothing tells them apart. Those for due work and those that
 * repeat are unref'ed, as a program's own may be, and do not count; the others end within seconds.
 */
import timers from "node:timers";
import timersPromises from "node:timers/promises";
import { syncBuiltinESMExports } from "node:module";
import { finished } from "node:stream";
import { promisify } from "node:util";
import { currentTurn } from "./current-turn.ts";

interface NotedTimer {
  /** Node's own mark of a timer that has fired or was cleared, in whatever way; there is no public one. */
  readonly _destroyed: boolean;
  hasRef(): boolean;
}

/** The owner of a turn. */
export interface TimerOwner {
  noteTimer(timer: NotedTimer): void;
}

type Setter = (callback: (...args: unknown[]) => void, delayMs?: number, ...args: unknown[]) => NotedTimer;
type Waiter = (
  delayMs?: number,
  value?: unknown,
  options?: { readonly ref?: boolean; readonly signal?: AbortSignal },
) => Promise<unknown>;

const INSTALLED = Symbol.for("signalbox.pending-timers");
/** Timers that are over are dropped when the list has grown to twice those that are not, and to this number at least. */
const MIN_LIST = 8;

export class PendingTimers {
  #timers: NotedTimer[] = [];
  #maxLength = MIN_LIST;

  add(timer: NotedTimer): void {
    if (this.#timers.length >= this.#maxLength) {
      this.#timers = this.#timers.filter(isPending);
      this.#maxLength = Math.max(MIN_LIST, 2 * this.#timers.length);
    }
    this.#timers.push(timer);
  }

  get isEmpty(): boolean {
    return !this.#timers.some(isPending);
  }
}

function isPending(timer: NotedTimer): boolean {
  return !timer._destroyed && timer.hasRef();
}

/**
 * From now on the timers of an instance's code are noted at the instance: those of `globalThis`, of `node:timers` and of `node:timers/promises`. Before
 * the program is loaded, which may keep the functions. Idempotent; also over several copies of this file.
 */
export function notePendingTimers(): void {
  const target = globalThis as typeof globalThis & { [INSTALLED]?: true };
  if (target[INSTALLED] === true) return;
  Object.defineProperty(target, INSTALLED, { value: true });
  const wait = notingWaiter(timersPromises.setTimeout);
  for (const name of ["setTimeout", "setInterval"] as const) {
    const setter = notingSetter(target[name] as unknown as Setter);
    if (name === "setTimeout") Object.defineProperty(setter, promisify.custom, { value: wait });
    Object.assign(target, { [name]: setter });
    Object.assign(timers, { [name]: setter });
  }
  Object.assign(timersPromises, { setTimeout: wait });
  syncBuiltinESMExports();
}

/** Notes a body until it has been read, or was cancelled, failed or forgotten: one that nobody reads never ends. */
export function noteBody(owner: TimerOwner, body: ReadableStream): void {
  const held = new WeakRef(body);
  const reading = { _destroyed: false, hasRef: () => held.deref() !== undefined };
  owner.noteTimer(reading);
  // Node's types leave out the streams of the web, which its documentation allows.
  finished(body as unknown as NodeJS.ReadableStream, () => {
    reading._destroyed = true;
  });
}

function notingSetter(set: Setter): Setter {
  const setter: Setter = (callback, delayMs, ...args) => {
    const timer = set(callback, delayMs, ...args);
    currentOwner()?.noteTimer(timer);
    return timer;
  };
  return named(setter, set);
}

function notingWaiter(wait: Waiter): Waiter {
  const waiter: Waiter = (delayMs, value, options) => {
    const waited = wait(delayMs, value, options);
    const owner = options?.ref === false ? undefined : currentOwner();
    if (owner === undefined) return waited;
    const timer = { _destroyed: false, hasRef: () => true };
    owner.noteTimer(timer);
    const end = () => {
      timer._destroyed = true;
    };
    waited.then(end, end);
    return waited;
  };
  return named(waiter, wait);
}

function named<F extends Setter | Waiter>(replacement: F, { name, length }: F): F {
  return Object.defineProperties(replacement, { name: { value: name }, length: { value: length } });
}

/** Undefined for code that belongs to no instance. */
function currentOwner(): TimerOwner | undefined {
  const owner = currentTurn()?.owner;
  return owner !== undefined && "noteTimer" in owner ? (owner as TimerOwner) : undefined;
}
