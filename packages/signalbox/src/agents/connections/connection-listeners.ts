/**
 * Listeners that an agent added to a connection, for code that is handed the connection as a `WebSocket`. They are called in the turn of the
 * event, before the agent's own hook. They are functions of the agent's object, so they last as long as the object is in memory.
 */
import type { ConnectionListener, ListenerOptions } from "../api/connection.ts";

export class ConnectionListeners {
  /** Lets the instance leave memory. */
  readonly release: () => void;
  /** In order of addition; the value is true for a listener that is called once. */
  readonly #byType = new Map<string, Map<ConnectionListener, boolean>>();

  /** `release` ends the hold that keeps the instance in memory while there are listeners. */
  constructor(release: () => void) {
    this.release = release;
  }

  has(type: string): boolean {
    return (this.#byType.get(type)?.size ?? 0) > 0;
  }

  get isEmpty(): boolean {
    return this.#byType.size === 0;
  }

  /** As for any event target, adding a listener again has no effect. */
  add(type: string, listener: ConnectionListener, options: ListenerOptions = {}): void {
    const listeners = this.#byType.get(type) ?? new Map<ConnectionListener, boolean>();
    this.#byType.set(type, listeners);
    if (!listeners.has(listener)) listeners.set(listener, options.once === true);
  }

  remove(type: string, listener: ConnectionListener): void {
    const listeners = this.#byType.get(type);
    listeners?.delete(listener);
    if (listeners?.size === 0) this.#byType.delete(type);
  }

  /** Calls all listeners, then throws the first error, if any: the turn fails with it. */
  dispatch(event: Event): void {
    const errors: unknown[] = [];
    // A copy: listeners may add and remove others.
    for (const [listener, isOnce] of new Map(this.#byType.get(event.type))) {
      if (isOnce) this.remove(event.type, listener);
      try {
        if (typeof listener === "function") listener(event);
        else listener.handleEvent(event);
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length > 0) throw errors[0];
  }
}
