/**
 * The client's copy of the instance's state: shown at once when this side changes it, corrected when the server refuses.
 *
 * The wire protocol acknowledges no accepted update (the server tells everyone but the sender), and a refusal does not name the
 * update it refuses. What can be known is the order: the server handles updates one after the other, and a Signalbox server sends the
 * state as it stands right after a refusal.
 *
 * 1. `current` is the newest update of this side that was not refused, else the newest state the server told.
 * 2. A state from the server ends all doubt: it is the truth, except for updates that still wait to be sent.
 * 3. A refusal takes back the newest sent update; the state that follows a refusal then says exactly which one it was.
 */

/** Nobody waits for the verdict over this many updates at once; older ones count as accepted. */
const MAX_UNDECIDED = 32;

export class StateMirror<State> {
  #confirmed: State | undefined;
  /** Sent and not refused so far, oldest first. */
  #undecided: State[] = [];
  /** Set while only offline: the newest update that still waits to be sent. */
  #unsent: { readonly state: State } | null = null;
  /** What was undecided before the last refusal; the next frame from the server explains it. */
  #beforeRefusal: State[] | null = null;

  get current(): State | undefined {
    return this.#unsent === null ? this.#newestSent() : this.#unsent.state;
  }

  /** This side changed the state while there is no connection. */
  keep(state: State): void {
    this.#unsent = { state };
  }

  /** An update of this side went out, perhaps one that was kept. */
  sent(state: State): void {
    if (this.#unsent?.state === state) this.#unsent = null;
    this.#beforeRefusal?.push(state);
    this.#undecided.push(state);
    if (this.#undecided.length > MAX_UNDECIDED) this.#confirmed = this.#undecided.shift();
  }

  /** The server told the state. */
  tell(state: State): void {
    const before = this.#beforeRefusal;
    this.#beforeRefusal = null;
    this.#confirmed = state;
    // After a refusal: what was accepted before it is in `state`; the first one behind it was refused; the rest is still undecided.
    this.#undecided = before === null ? [] : before.slice(indexOfEqual(before, state) + 2);
  }

  /** The server refused an update of this side. */
  refuse(): void {
    this.#beforeRefusal = this.#undecided;
    this.#undecided = this.#undecided.slice(0, -1);
  }

  /** The connection is gone: the next one begins with the truth. `hasUnsent` tells whether an update still waits. */
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

/** The last position of an equal state, −1 when there is none. Both came through JSON on the server, so JSON decides. */
function indexOfEqual<State>(states: readonly State[], state: State): number {
  const text = JSON.stringify(state);
  return states.findLastIndex((candidate) => JSON.stringify(candidate) === text);
}
