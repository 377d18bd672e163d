/**
 * Calls from one agent to another: `const other = await getAgentByName(OtherAgent, "name"); await other.method(1)`, and HTTP requests to
 * another agent's `onRequest`: `await other.fetch("https://agent/path")`.
 *
 * A call is an output of the calling instance (it leaves when everything before it is durable) and a turn of the called one. Arguments and
 * results are JSON, as they would be between machines. A call that would wait for itself is refused. A call from a turn that must not write
 * is a turn that must not write.
 */
import { currentTurn } from "../../engines/turn-runtime/index.ts";
import type { AgentClass, AnyAgent } from "./agent.ts";
import { AgentId } from "./agent-context.ts";

/** The owner of a turn of agents' code, as far as calls to other instances need it. */
export interface AgentCaller {
  /** Resolves when everything written so far is durable. */
  passGate(): Promise<void>;
  /** Calls another instance of the same account. `agent` is a class or the name of one. */
  callAgent(agent: AgentClass | string, name: string, call: AgentCall): Promise<unknown>;
}

interface CallDetails {
  /** Keys of the instances whose turns wait for the call. */
  readonly callers: readonly string[];
  /** The caller must not write, so the called instance must not either. */
  readonly isReadonly: boolean;
  /** The span of the call, if calls are traced. */
  readonly traceparent?: string | undefined;
}

export type AgentCall = CallDetails &
  (
    | { readonly kind: "method"; readonly method: string; readonly args: readonly unknown[] }
    | { readonly kind: "fetch"; readonly request: Request }
  );

type Promised<T> = T extends Promise<unknown> ? T : Promise<T>;

/** The methods that an agent's own class adds, each returning a promise, and `fetch`. */
export type AgentStub<T extends AnyAgent> = {
  readonly [
    K in Exclude<keyof T, keyof AnyAgent> as T[K] extends (...args: never[]) => unknown ? K : never
  ]: T[K] extends (...args: infer Args) => infer Result ? (...args: Args) => Promised<Result> : never;
} & { fetch(input: string | URL | Request, init?: RequestInit): Promise<Response> };

/** One agent of `env`: `env.Room.getByName("lobby")`. Works inside and outside of agents' code. */
export class AgentNamespace<T extends AnyAgent = AnyAgent> {
  readonly #send: Send;

  /** @internal */
  constructor(send: (name: string, call: AgentCall) => Promise<unknown>) {
    this.#send = send;
  }

  /** A stub of the instance, which the first call creates if it does not exist. */
  getByName(name: string): AgentStub<T> {
    return createStub<T>((call) => this.#send(name, call));
  }

  idFromName(name: string): AgentId {
    return new AgentId(name);
  }

  get(id: AgentId): AgentStub<T> {
    return this.getByName(id.name);
  }
}

/**
 * A stub of another agent's instance, which the first call creates if it does not exist. A namespace of `env` works everywhere, a class or
 * its name inside agents' code only.
 */
export async function getAgentByName<T extends AnyAgent>(
  agent: AgentNamespace<T> | AgentClass<T> | string,
  name: string,
): Promise<AgentStub<T>> {
  if (isNamespace<T>(agent)) return agent.getByName(name);
  if (typeof agent !== "string" && typeof agent !== "function")
    throw new TypeError("getAgentByName needs an agent of `env`, an agent class, or its name");
  const turn = currentTurn();
  if (turn === undefined)
    throw new Error("outside of agents' code, getAgentByName needs an agent of `env`, such as env.Room");
  const caller = turn.owner as AgentCaller;
  return createStub<T>((call) => caller.callAgent(agent, name, call));
}

type Send = (name: string, call: AgentCall) => Promise<unknown>;

/** By its shape: the namespace may come from another copy of this module. */
function isNamespace<T extends AnyAgent>(agent: unknown): agent is AgentNamespace<T> {
  return typeof agent === "object" && agent !== null && "getByName" in agent;
}

function createStub<T extends AnyAgent>(send: (call: AgentCall) => Promise<unknown>): AgentStub<T> {
  return new Proxy(Object.create(null) as object, {
    get: (_stub, method) => {
      // A stub must not look like a promise: awaiting it would call `then` of the other agent.
      if (typeof method !== "string" || method === "then") return undefined;
      if (method === "fetch")
        return (input: string | URL | Request, init?: RequestInit) => sendRequest(send, input, init);
      return (...args: unknown[]) => {
        // Serialised before the wait: the caller may change the arguments afterwards.
        const json = JSON.stringify(args);
        return sendCall((details) =>
          send({ ...details, kind: "method", method, args: JSON.parse(json) as unknown[] }),
        );
      };
    },
  }) as AgentStub<T>;
}

async function sendRequest(
  send: (call: AgentCall) => Promise<unknown>,
  input: string | URL | Request,
  init: RequestInit | undefined,
): Promise<Response> {
  const request = new Request(input, init);
  if (request.headers.get("upgrade")?.toLowerCase() === "websocket")
    throw new TypeError("fetch of an agent's stub cannot open a WebSocket");
  return (await sendCall((details) => send({ ...details, kind: "fetch", request }))) as Response;
}

async function sendCall(send: (details: CallDetails) => Promise<unknown>): Promise<unknown> {
  const turn = currentTurn();
  if (turn === undefined) return send({ callers: [], isReadonly: false });
  await (turn.owner as AgentCaller).passGate();
  return send({ callers: turn.phase === "running" ? turn.chain : [], isReadonly: !turn.isWriteAllowed });
}
