/**
 * The start of a connection: the identity frame, then the state frame if the identity announces one. The client sends no frame before:
 * a state update could otherwise cross the server's first state frame, and the client would show the older state.
 */
import type { ServerFrame } from "@signalbox/protocol";

/** An agent can disable the identity frame. After this time the connection is used without one. */
const GRACE_MS = 1000;

export class Handshake {
  readonly #onDone: () => void;
  readonly #timer: ReturnType<typeof setTimeout>;
  #isDone = false;
  #isIdentified = false;

  constructor(onDone: () => void) {
    this.#onDone = onDone;
    this.#timer = setTimeout(() => this.#finish(), GRACE_MS);
  }

  get isDone(): boolean {
    return this.#isDone;
  }

  /** Must be called with every frame after the frame is applied. */
  see(frame: ServerFrame): void {
    if (frame.type === "cf_agent_identity") {
      this.#isIdentified = true;
      if (frame.stateFollows !== true) this.#finish();
    } else if (frame.type === "cf_agent_state" && this.#isIdentified) {
      this.#finish();
    }
  }

  abandon(): void {
    clearTimeout(this.#timer);
    this.#isDone = true;
  }

  #finish(): void {
    if (this.#isDone) return;
    this.abandon();
    this.#onDone();
  }
}
