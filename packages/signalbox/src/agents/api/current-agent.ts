/**
 * The agent, connection and request of the running code: `getCurrentAgent()`. The answer follows promises and timers, as the turn of the
 * running code does.
 */
import { currentTurn, type TurnOrigin } from "../../engines/turn-runtime/index.ts";
import type { AnyAgent } from "./agent.ts";
import type { Connection } from "./connection.ts";

/** What caused a turn of an agent. */
export interface AgentOrigin extends TurnOrigin {
  readonly connection?: Connection | undefined;
  readonly request?: Request | undefined;
  /** The span of another agent that called. */
  readonly traceparent?: string | undefined;
}

/** The owner of a turn of agents' code, as far as `getCurrentAgent` needs it. */
export interface AgentOwner {
  /** Undefined before the object exists, and when the instance has left memory. */
  readonly agentObject: AnyAgent | undefined;
}

export interface CurrentAgent<T extends AnyAgent = AnyAgent> {
  readonly agent: T | undefined;
  /** The connection whose message, call or event the code handles. */
  readonly connection: Connection | undefined;
  /** The HTTP request that the code handles, or that opened the connection in `onConnect`. */
  readonly request: Request | undefined;
  /** Always undefined: native agents receive no email. */
  readonly email: undefined;
}

const NONE: CurrentAgent<never> = {
  agent: undefined,
  connection: undefined,
  request: undefined,
  email: undefined,
};

/** The fields are undefined outside of agents' code. */
export function getCurrentAgent<T extends AnyAgent = AnyAgent>(): CurrentAgent<T> {
  const turn = currentTurn();
  if (turn === undefined) return NONE;
  const origin: AgentOrigin | null = turn.origin;
  return {
    agent: (turn.owner as AgentOwner).agentObject as T | undefined,
    connection: origin?.connection,
    request: origin?.request,
    email: undefined,
  };
}
