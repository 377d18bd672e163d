/**
 * A read-only connection to an instance that does not exist. It must not create the instance, but its page waits for the entity's first event.
 * The connection therefore receives the frames of a new instance, and joins the instance when something else creates it.
 *
 *   waiting ─ the instance is created → joined, like any other connection
 *      └ the connection closes → gone
 */
import { parseClientFrame, type ServerFrame, SignalboxError } from "@signalbox/protocol";
import type { AgentDefinition } from "../instance/agent-definition.ts";
import type { LocalSocket } from "../../engines/http-server/index.ts";
import { toFrame } from "../../engines/http-server/index.ts";

export class EarlyReader {
  readonly #socket: LocalSocket;
  readonly #definition: AgentDefinition;
  readonly #name: string;

  constructor(socket: LocalSocket, definition: AgentDefinition, name: string) {
    this.#socket = socket;
    this.#definition = definition;
    this.#name = name;
  }

  greet(): void {
    const { sendsIdentity, kebab, initialState } = this.#definition;
    if (sendsIdentity) {
      const identity = { type: "cf_agent_identity", name: this.#name, agent: kebab } as const;
      this.#send(initialState === null ? identity : { ...identity, stateFollows: true });
    }
    this.#sendState();
  }

  /** Refuses a message as the instance would. */
  refuse(message: string | Buffer): void {
    const frame = typeof message === "string" ? parseClientFrame(message) : null;
    const error = new SignalboxError("agent_readonly").message;
    if (frame?.type === "rpc") {
      this.#send({ type: "rpc", id: frame.id, success: false, error });
    } else {
      this.#send({ type: "cf_agent_state_error", error });
      this.#sendState();
    }
  }

  #sendState(): void {
    const { initialState } = this.#definition;
    if (initialState !== null)
      this.#socket.write(toFrame(`{"type":"cf_agent_state","state":${initialState}}`));
  }

  #send(frame: ServerFrame): void {
    this.#socket.write(toFrame(JSON.stringify(frame)));
  }
}
