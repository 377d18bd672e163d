/**
 * The client's copy of the instance's state. Local updates apply at once and are reverted if the server rejects them.
 *
 * The wire protocol does not acknowledge accepted updates (the server sends the state to all clients but the sender), and a rejection does
 * not identify the update. Only the order is known: the server handles updates sequentially, and a Signalbox server sends its state
 * directly after a rejection.
 *
 * 1. `current` is the newest local update that was not rejected, otherwise the newest state from the server.
 * 2. A state from the server is authoritative, except for updates that are not sent yet.
 * 3. A rejection reverts the newest sent update; the state frame that follows identifies the rejected update.
 */

/** Maximum number of undecided updates; older updates count as accepted. */
const MAX_UNDECIDED = 32;

export class StateMirror<State> {
  #confirmed: State | undefined;
  /** Updates that were sent and not rejected, oldest first. */
  #undecided: State[] = [];
  /** The newest update that is not sent yet; set only while offline. */
  #unsent: { readonly state: State } | null = null;
  /** The undecided updates before the last rejection; the next state frame decides them. */
  #beforeRefusal: State[] | null = null;

  get current(): State | undefined {
    return this.#unsent === null ? this.#newestSent() : this.#unsent.state;
  }

  /** A local update while there is no connection. */
  keep(state: State): void {
    this.#unsent = { state };
  }

  /** A local update was sent, possibly from the outbox. */
  sent(state: State): void {
    if (this.#unsent?.state === state) this.#unsent = null;
    this.#beforeRefusal?.push(state);
    this.#undecided.push(state);
    if (this.#undecided.length > MAX_UNDECIDED) this.#confirmed = this.#undecided.shift();
  }

  /** The server sent the state. */
  receive(state: State): void {
    const before = this.#beforeRefusal;
    this.#beforeRefusal = null;
    this.#confirmed = state;
    // After a rejection, `state` is the last accepted update; the update after it was rejected; later updates are undecided.
    this.#undecided = before === null ? [] : before.slice(indexOfEqual(before, state) + 2);
  }

  /** The server rejected a local update. */
  refuse(): void {
    this.#beforeRefusal = this.#undecided;
    this.#undecided = this.#undecided.slice(0, -1);
  }

  /** The connection ended; the next connection starts with the server's state. `hasUnsent`: an update is still in the outbox. */
  disconnect(hasUnsent: boolean): void {
    this.#confirmed = this.#newestSent();
    this.#undecided = [];
    this.#beforeRefusal = null;
    if (!hasUnsent) this.#unsent = null;
  }

  #newestSent(): State | undefined {
    return this.#undecided.length > 0 ? this.#undecided.at(-1) : this.#confirmed;
  }
}

/** The last index of an equal state, or −1. States are compared as JSON, because the server receives and sends JSON. */
function indexOfEqual<State>(states: readonly State[], state: State): number {
  const text = JSON.stringify(state);
  return states.findLastIndex((candidate) => JSON.stringify(candidate) === text);
}
