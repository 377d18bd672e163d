/** Listeners by event name. A listener that throws harms neither the connection nor the other listeners; its error is reported as uncaught. */

type Listener = (...args: never[]) => void;

export class Emitter<Events extends { [Name in keyof Events]: Listener }> {
  /** Lists are replaced, not changed: whoever is added or removed while an event runs counts from the next one on. */
  readonly #listeners = new Map<keyof Events, readonly Listener[]>();

  /** Returns the function that removes the listener again. */
  on<Name extends keyof Events>(name: Name, listener: Events[Name]): () => void {
    // The wrapper keeps two registrations of one function apart.
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
