/**
 * Calls from one agent to another: `const other = await getAgentByName(OtherAgent, "name"); await other.method(1)`.
 *
 * A call is an output of the calling instance (it leaves when everything before it is durable) and a turn of the called one. Arguments
 * and results are JSON, as they would be between machines. A call that would wait for itself is refused.
 */
import { kebabCase } from "@signalbox/protocol";
import { currentTurn } from "../../engines/turn-runtime/index.ts";
import type { AgentClass, AnyAgent } from "./agent.ts";

/** The owner of a turn of agents' code, as far as calls to other instances need it. */
export interface AgentCaller {
  /** Resolves when everything written so far is durable. */
  passGate(): Promise<void>;
  /** Calls a method of another instance of the same account. */
  callAgent(target: CallTarget, call: AgentCall): Promise<unknown>;
}

export interface CallTarget {
  readonly agent: string;
  readonly name: string;
}

export interface AgentCall {
  readonly method: string;
  readonly args: readonly unknown[];
  /** Keys of the instances whose turns wait for the call. */
  readonly callers: readonly string[];
}

type Promised<T> = T extends Promise<unknown> ? T : Promise<T>;

/** The methods that an agent's own class adds, each returning a promise. */
export type AgentStub<T extends AnyAgent> = {
  readonly [
    K in Exclude<keyof T, keyof AnyAgent> as T[K] extends (...args: never[]) => unknown ? K : never
  ]: T[K] extends (...args: infer Args) => infer Result ? (...args: Args) => Promised<Result> : never;
};

/** A stub of another agent's instance, which the first call creates if it does not exist. Works inside agents' code only. */
export async function getAgentByName<T extends AnyAgent>(
  agent: AgentClass<T> | string,
  name: string,
): Promise<AgentStub<T>> {
  const target = { agent: kebabCase(typeof agent === "string" ? agent : agent.name), name };
  requireTurn();
  return new Proxy(Object.create(null) as object, {
    get: (_stub, method) =>
      // A stub must not look like a promise: awaiting it would call `then` of the other agent.
      typeof method !== "string" || method === "then"
        ? undefined
        : (...args: unknown[]) => call(target, method, args),
  }) as AgentStub<T>;
}

async function call(target: CallTarget, method: string, args: readonly unknown[]): Promise<unknown> {
  const json = JSON.stringify(args);
  const turn = requireTurn();
  const caller = turn.owner as AgentCaller;
  await caller.passGate();
  const callers = turn.phase === "running" ? turn.chain : [];
  return caller.callAgent(target, { method, args: JSON.parse(json) as unknown[], callers });
}

function requireTurn() {
  const turn = currentTurn();
  if (turn === undefined) throw new Error("getAgentByName works inside an agent's code only");
  return turn;
}
