/** Calls of an agent's methods, as turns: over a WebSocket, over HTTP, or from another agent. */
import { SignalboxError } from "@signalbox/protocol";
import { messageOf } from "../../core/stored-error.ts";
import type { CallableMethod } from "../api/callable.ts";
import type { AgentOrigin } from "../api/current-agent.ts";
import type { StreamingResponse } from "../api/streaming-response.ts";
import type { AgentDefinition } from "./agent-definition.ts";
import type { TurnTarget } from "./agent-turn.ts";

/** The callable method of that name. Throws when there is none, or when the method is not marked as callable. */
export function findCallable(definition: AgentDefinition, method: string): CallableMethod {
  const found = definition.callables.get(method);
  if (found !== undefined) return found;
  // Members of the base class are reported as unknown.
  throw definition.hasMethod(method)
    ? new SignalboxError("agent_method_not_callable", { message: `Method ${method} is not callable` })
    : new SignalboxError("agent_method_unknown", { message: `Method ${method} does not exist` });
}

export interface CallOptions {
  /** Keys of the instances whose turns wait for the call. */
  readonly callers?: readonly string[];
  /** Throws to refuse the call at the start of its turn. */
  readonly check?: () => void;
  readonly origin?: AgentOrigin | undefined;
  /** The method is marked as concurrent. */
  readonly isConcurrent?: boolean | undefined;
  /** Receives the outcome, the result as JSON, in its place among the outputs of the instance. */
  readonly onOutcome?: (error: unknown, result: string | undefined) => void;
}

/** Runs a method as a turn. The result is serialised inside the turn: a result that is not JSON fails the turn. */
export function callMethod(
  target: TurnTarget,
  method: string,
  args: readonly unknown[],
  options: CallOptions = {},
): Promise<string | undefined> {
  return target.run<string | undefined>({
    kind: "rpc",
    label: method,
    ...(options.callers === undefined ? {} : { callers: options.callers }),
    onOutcome: options.onOutcome,
    origin: options.origin,
    cause: args,
    isConcurrent: options.isConcurrent,
    body: (live) => {
      options.check?.();
      const result = live.invoke(method, args);
      return result instanceof Promise ? result.then(toJson) : toJson(result);
    },
  });
}

export interface StreamOptions {
  /** Throws to refuse the call at the start of its turn. */
  readonly check: () => void;
  readonly origin: AgentOrigin;
  readonly isConcurrent: boolean | undefined;
}

/** Runs a streaming method. The stream ends with the method at the latest; after a failure it is cut, before the error is sent. */
export async function streamMethod(
  target: TurnTarget,
  method: string,
  args: readonly unknown[],
  stream: StreamingResponse,
  { check, origin, isConcurrent }: StreamOptions,
): Promise<void> {
  await target.run({
    kind: "rpc",
    label: method,
    origin,
    cause: args,
    isConcurrent,
    afterFailure: (error) => stream.cut(error instanceof Error ? error : new Error(messageOf(error))),
    body: async (live) => {
      check();
      await live.invoke(method, [stream, ...args]);
    },
  });
  stream.end();
}

/** Serialises a result; bigints become strings. Few results have bigints, so the slower replacer runs only when `JSON.stringify` refuses. */
export function toJson(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch (error) {
    if (error instanceof RangeError) throw notSerialisable(error);
    return toJsonWithBigints(value, error);
  }
}

function toJsonWithBigints(value: unknown, cause: unknown): string | undefined {
  let hasBigint = false;
  let json: string | undefined;
  try {
    json = JSON.stringify(value, (_key, part: unknown) => {
      if (typeof part !== "bigint") return part;
      hasBigint = true;
      return String(part);
    });
  } catch (error) {
    throw error instanceof RangeError ? notSerialisable(error) : error;
  }
  if (!hasBigint) throw cause;
  return json;
}

/** Callers can cause this error through their arguments, so they receive it, and it is not logged. */
function notSerialisable(cause: RangeError): SignalboxError {
  return new SignalboxError("agent_failed", {
    message: "The result is nested too deeply, or too long, to be written as JSON",
    cause,
  });
}

/** The part of an error of agents' code that callers may see: the message, never the stack. */
export function publicMessage(error: unknown): string {
  if (error instanceof Error) return messageOf(error);
  return typeof error === "string" ? error : "The method failed";
}
