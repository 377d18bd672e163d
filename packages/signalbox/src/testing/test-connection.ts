/** A live connection of a test: the client of applications, and what it has received so far. */
import { AgentConnection, type AgentConnectionOptions, type StateOf } from "@signalbox/client";
import { WebSocket } from "ws";
import { afterAwakeTime } from "../core/awake-time.ts";

/** How long a test waits for a state or message that does not come. */
const MAX_WAIT_MS = 5000;

export class TestConnection<Agent> extends AgentConnection<Agent> implements AsyncDisposable {
  /** Every state received from the agent, oldest first. */
  readonly states: StateOf<Agent>[] = [];
  /** Every message received from the agent, oldest first. */
  readonly messages: string[] = [];
  readonly #sockets: { current: WebSocket | null };
  readonly #onClose: (connection: TestConnection<Agent>) => void;

  constructor(options: AgentConnectionOptions, onClose: (connection: TestConnection<Agent>) => void) {
    const sockets: { current: WebSocket | null } = { current: null };
    super({
      ...options,
      // Unlike the WebSocket of the runtime, this one has pings, by which `caughtUp` knows that nothing is under way.
      openSocket: (url, token) => {
        const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
        const socket = new WebSocket(url, { headers });
        // A failure also closes the socket, which the connection handles.
        socket.on("error", () => undefined);
        sockets.current = socket;
        return socket;
      },
    });
    this.#sockets = sockets;
    this.#onClose = onClose;
    this.on("state", (state, source) => {
      if (source === "server") this.states.push(state);
    });
    this.on("message", (text) => this.messages.push(text));
  }

  /** Resolves when everything that the agent has sent so far has been received. */
  async caughtUp(): Promise<void> {
    const socket = this.#sockets.current;
    if (socket === null || socket.readyState !== WebSocket.OPEN) return;
    await new Promise<void>((resolve) => {
      socket.once("pong", () => resolve());
      socket.once("close", () => resolve());
      socket.ping();
    });
  }

  /** Resolves with the first state that satisfies the condition, the current one included. */
  async untilState(
    condition: (state: StateOf<Agent>) => boolean,
    maxWaitMs = MAX_WAIT_MS,
  ): Promise<StateOf<Agent>> {
    const { state } = this;
    if (state !== undefined && condition(state)) return state;
    return this.#until(maxWaitMs, "state", (resolve) =>
      this.on("state", (received) => {
        if (condition(received)) resolve(received);
      }),
    );
  }

  /** Resolves with the first message that satisfies the condition, earlier ones included. */
  async untilMessage(condition: (text: string) => boolean, maxWaitMs = MAX_WAIT_MS): Promise<string> {
    const known = this.messages.find((text) => condition(text));
    if (known !== undefined) return known;
    return this.#until(maxWaitMs, "message", (resolve) =>
      this.on("message", (text) => {
        if (condition(text)) resolve(text);
      }),
    );
  }

  override close(code = 1000, reason = ""): void {
    super.close(code, reason);
    this.#onClose(this);
  }

  /** Closes, and resolves when the socket is closed. */
  async [Symbol.asyncDispose](): Promise<void> {
    const socket = this.#sockets.current;
    this.close();
    if (socket === null || socket.readyState === WebSocket.CLOSED) return;
    await new Promise((resolve) => socket.once("close", resolve));
  }

  async #until<T>(
    maxWaitMs: number,
    what: string,
    listen: (resolve: (value: T) => void) => () => void,
  ): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const stop = listen(resolve);
    const received = () => JSON.stringify(what === "state" ? this.state : this.messages);
    // A pause of the machine is no time that the agent had.
    const cancel = afterAwakeTime(maxWaitMs, () =>
      reject(new Error(`no ${what} satisfied the condition within ${maxWaitMs} ms; received: ${received()}`)),
    );
    try {
      return await promise;
    } finally {
      cancel();
      stop();
    }
  }
}
