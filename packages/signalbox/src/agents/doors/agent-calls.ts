/** Calls between instances of one account. Any method of the called agent's own class is allowed, because both are the operator's code. */
import { SignalboxError } from "@signalbox/protocol";
import type { AgentCall } from "../api/agent-stub.ts";
import type { AgentOrigin } from "../api/current-agent.ts";
import type { AgentDefinition } from "../instance/agent-definition.ts";
import type { Directory } from "../instance/directory.ts";
import { checkInstanceName, type InstanceRef, keyOf } from "../instance/instance-ref.ts";
import { callMethod } from "../instance/method-call.ts";
import type { TurnSpans } from "../../telemetry/turn-spans.ts";

export type MethodCall = Extract<AgentCall, { kind: "method" }>;
export type FetchCall = Extract<AgentCall, { kind: "fetch" }>;

/** Runs calls where the called instances are. */
export interface InstanceCalls {
  /** Resolves to the result as JSON. */
  callMethod(target: InstanceRef, call: MethodCall): Promise<string | undefined>;
  fetch(target: InstanceRef, call: FetchCall): Promise<Response>;
}

/** Checks calls, and runs those to instances of this node. */
export class AgentCalls implements InstanceCalls {
  readonly #definitions: ReadonlyMap<string, AgentDefinition>;
  readonly #directory: Directory;
  readonly #spans: TurnSpans | null;

  /** `spans` is null unless turns are traced. */
  constructor(
    definitions: ReadonlyMap<string, AgentDefinition>,
    directory: Directory,
    spans: TurnSpans | null,
  ) {
    this.#definitions = definitions;
    this.#directory = directory;
    this.#spans = spans;
  }

  /** Calls an instance of any node; `calls` runs the call where the instance is. */
  call(target: InstanceRef, call: AgentCall, calls: InstanceCalls): Promise<unknown> {
    if (this.#spans === null) return this.#call(target, call, calls);
    const agent = ["gen_ai.agent.name", target.agent] as const;
    return this.#spans.outgoing(`call ${target.agent}`, agent, (traceparent) =>
      this.#call(target, { ...call, traceparent }, calls),
    );
  }

  async #call(target: InstanceRef, call: AgentCall, calls: InstanceCalls): Promise<unknown> {
    // Checked by the caller's node: a wrong call costs no hop.
    this.#check(target, call);
    if (call.kind === "fetch") return calls.fetch(target, call);
    const result = await calls.callMethod(target, call);
    return result === undefined ? undefined : JSON.parse(result);
  }

  async callMethod(target: InstanceRef, call: MethodCall): Promise<string | undefined> {
    const { definition, isConcurrent } = this.#check(target, call);
    const instance = this.#directory.get(definition, target.account, target.name);
    const { callers } = call;
    return callMethod(instance, call.method, call.args, { callers, origin: originOf(call), isConcurrent });
  }

  async fetch(target: InstanceRef, call: FetchCall): Promise<Response> {
    const { definition } = this.#check(target, call);
    const { request, callers } = call;
    const instance = this.#directory.get(definition, target.account, target.name);
    const answer: unknown = await instance.run<unknown>({
      kind: "request",
      label: `${request.method} ${new URL(request.url).pathname}`,
      callers,
      origin: { ...originOf(call), request },
      body: ({ agent }) => agent.onRequest(request, {}),
    });
    if (answer instanceof Response) return answer;
    throw new SignalboxError("agent_failed", { message: "onRequest did not return a Response" });
  }

  #check(target: InstanceRef, call: AgentCall): { definition: AgentDefinition; isConcurrent: boolean } {
    const definition = this.#definitions.get(target.agent);
    if (definition === undefined)
      throw new SignalboxError("agent_not_found", { message: `No agent "${target.agent}"` });
    const name = checkInstanceName(target.name);
    if (call.kind === "method" && !definition.hasMethod(call.method)) {
      throw new SignalboxError("agent_method_unknown", { message: `Method ${call.method} does not exist` });
    }
    const isConcurrent = call.kind === "method" && definition.callables.get(call.method)?.concurrent === true;
    if (!definition.isInterleaving && !isConcurrent && call.callers.includes(keyOf(target))) {
      throw new SignalboxError("agent_call_cycle", {
        message: `${target.agent}/${name} is waiting for this call and cannot answer it`,
      });
    }
    return { definition, isConcurrent };
  }
}

/** A caller that must not write calls another agent: a method that writes fails there too. */
const READONLY_CALLER: AgentOrigin = {
  requireWritable() {
    throw new SignalboxError("agent_readonly");
  },
};

function originOf({ isReadonly, traceparent }: AgentCall): AgentOrigin | undefined {
  if (traceparent !== undefined) return { ...(isReadonly ? READONLY_CALLER : {}), traceparent };
  return isReadonly ? READONLY_CALLER : undefined;
}
