/**
 * Calls from one agent to another: `const other = await getAgentByName(OtherAgent, "name"); await other.method(1)`.
 *
 * A call is an output of the calling instance (it leaves when everything before it is durable) and a turn of the called one. Arguments
 * and results are JSON, as they would be between machines. A call that could only wait for itself is refused instead of hanging.
 */
import { kebabCase } from "@signalbox/protocol";
import type { AgentClass, AnyAgent } from "./agent.ts";
import { currentTurn } from "../../engines/turn-runtime/index.ts";

type Promised<T> = T extends Promise<unknown> ? T : Promise<T>;

/** The methods an agent's own class adds, each returning a promise. */
export type AgentStub<T extends AnyAgent> = {
  readonly [
    K in Exclude<keyof T, keyof AnyAgent> as T[K] extends (...args: never[]) => unknown ? K : never
  ]: T[K] extends (...args: infer Args) => infer Result ? (...args: Args) => Promised<Result> : never;
};

/** A stub of another agent's instance, which is created if there is none. Works inside agents' code. */
export async function getAgentByName<T extends AnyAgent>(
  agent: AgentClass<T> | string,
  name: string,
): Promise<AgentStub<T>> {
  const target = { agent: kebabCase(typeof agent === "string" ? agent : agent.name), name };
  ownerOf();
  return new Proxy(Object.create(null) as object, {
    get: (_stub, method) =>
      // A stub must not look like a promise, or awaiting it would call `then` on the other side.
      typeof method !== "string" || method === "then"
        ? undefined
        : (...args: unknown[]) => call(target, method, args),
  }) as AgentStub<T>;
}

async function call(
  target: { readonly agent: string; readonly name: string },
  method: string,
  args: readonly unknown[],
): Promise<unknown> {
  const json = JSON.stringify(args);
  const { turn, owner } = ownerOf();
  await owner.passGate();
  const callers = turn.phase === "running" ? turn.chain : [];
  return owner.callAgent(target, method, JSON.parse(json) as unknown[], callers);
}

function ownerOf() {
  const turn = currentTurn();
  if (turn === undefined) throw new Error("getAgentByName works inside an agent's code only");
  return { turn, owner: turn.owner };
}
