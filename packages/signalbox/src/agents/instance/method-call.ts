/** Calls of an agent's methods from outside: over a WebSocket, over HTTP, or from another agent. */
import { SignalboxError } from "@signalbox/protocol";
import type { AgentDefinition } from "./agent-definition.ts";
import type { CallableMethod } from "../api/callable.ts";
import type { Instance } from "./instance.ts";
import { StreamingResponse, type StreamEvent } from "../api/streaming-response.ts";

/** The method's entry; throws for one that is unknown, private, inherited from the runtime, or not marked. */
export function findCallable(definition: AgentDefinition, method: string): CallableMethod {
  const found = definition.callables.get(method);
  if (found !== undefined) return found;
  // Names of the runtime's own members are as unknown as any other: nobody learns what the base class has.
  throw definition.hasMethod(method)
    ? new SignalboxError("agent_method_not_callable", { message: `Method ${method} is not callable` })
    : new SignalboxError("agent_method_unknown", { message: `Method ${method} does not exist` });
}

export interface CallOptions {
  /** Instances that wait for the call. */
  readonly callers?: readonly string[];
  /** Throws to refuse the call when its turn has come. */
  readonly check?: () => void;
  /** Called with the outcome, the result as JSON, in its place among the instance's outputs. */
  readonly tell?: (error: unknown, result: string | undefined) => void;
}

/** Runs a method as a turn. What it returns is serialised inside the turn: a result that is no JSON fails it. */
export function callMethod(
  instance: Instance,
  method: string,
  args: readonly unknown[],
  options: CallOptions = {},
): Promise<string | undefined> {
  return instance.run<string | undefined>({
    kind: "rpc",
    label: method,
    ...(options.callers === undefined ? {} : { callers: options.callers }),
    tell: options.tell,
    body: () => {
      options.check?.();
      const result = invoke(instance, method, args);
      return result instanceof Promise ? result.then(toJson) : toJson(result);
    },
  });
}

/** Runs a streaming method; frames go out through `emit` as they are produced, the last one is `end` or `error`. */
export async function streamMethod(
  instance: Instance,
  method: string,
  args: readonly unknown[],
  emit: (event: StreamEvent) => void,
  check: () => void,
): Promise<void> {
  const stream = new StreamingResponse(emit);
  await instance.run({
    kind: "rpc",
    label: method,
    body: async () => {
      check();
      await invoke(instance, method, [stream, ...args]);
    },
  });
  stream.end();
}

export function invoke(instance: Instance, method: string, args: readonly unknown[]): unknown {
  const { agent } = instance.parts;
  return (agent as unknown as Record<string, (...args: readonly unknown[]) => unknown>)[method]?.(...args);
}

/** Integers that JSON's readers would round are written as text; nearly no result has any, so they are looked for only when there is one. */
export function toJson(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch (error) {
    if (error instanceof RangeError) throw unwritable(error);
    return withLargeIntegers(value, error);
  }
}

function withLargeIntegers(value: unknown, cause: unknown): string | undefined {
  let hasBigint = false;
  let json: string | undefined;
  try {
    json = JSON.stringify(value, (_key, part: unknown) => {
      if (typeof part !== "bigint") return part;
      hasBigint = true;
      return String(part);
    });
  } catch (error) {
    throw error instanceof RangeError ? unwritable(error) : error;
  }
  if (!hasBigint) throw cause;
  return json;
}

/** Callers choose what a method may pass on to its result, so this is told to them and is no failure to be logged. */
function unwritable(cause: RangeError): SignalboxError {
  return new SignalboxError("agent_failed", {
    message: "The result is nested too deeply, or too long, to be written as JSON",
    cause,
  });
}

/** What a caller may know of an error thrown by an agent's code: its message, never its stack. */
export function publicMessage(error: unknown): string {
  if (error instanceof Error) return error.message;
  return typeof error === "string" ? error : "The method failed";
}
