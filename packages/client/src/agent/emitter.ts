/** Listeners by event name. An error thrown by a listener is reported as uncaught and does not affect other listeners or the connection. */

type Listener = (...args: never[]) => void;

export class Emitter<Events extends { [Name in keyof Events]: Listener }> {
  /** Lists are replaced, not modified: a listener added or removed during an event takes effect with the next event. */
  readonly #listeners = new Map<keyof Events, readonly Listener[]>();

  /** Returns a function that removes the listener. */
  on<Name extends keyof Events>(name: Name, listener: Events[Name]): () => void {
    // The wrapper distinguishes two registrations of one function.
    const entry: Listener = (...args) => listener(...args);
    this.#listeners.set(name, [...this.#of(name), entry]);
    return () => {
      this.#listeners.set(
        name,
        this.#of(name).filter((other) => other !== entry),
      );
    };
  }

  emit<Name extends keyof Events>(name: Name, ...args: Parameters<Events[Name]>): void {
    for (const listener of this.#of(name)) {
      try {
        (listener as (...args: unknown[]) => void)(...args);
      } catch (error) {
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }

  #of(name: keyof Events): readonly Listener[] {
    return this.#listeners.get(name) ?? [];
  }
}
