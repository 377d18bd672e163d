/**
 * The beginning of a connection: identity first, then the state when identity announces it. Until then nothing is sent, because a
 * state update sent earlier would cross the server's first state on the wire, and this side would show the older one.
 */
import type { ServerFrame } from "@signalbox/protocol";

/** A server that never introduces itself (an agent may turn that off) is used anyway after this pause. */
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

  /** To be told of every frame after it was applied. */
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
