/**
 * The failure of work that ran on another node, or was refused there, as the caller's node receives it.
 *
 * Invariants:
 * 1. The client sees the same answer as from the node that owns the instance: an error of the table keeps its name, status, message and headers.
 * 2. The cause of an error reaches the log of the caller's node, and never the client.
 * 3. An error of agents' code keeps its name, its message, and its class if JavaScript has it.
 */
import { ERROR_TABLE, type ErrorDetails, SignalboxError } from "@signalbox/protocol";
import { InstanceElsewhereError, InstanceFencedError } from "../../engines/instance-store/index.ts";
import { encodePacket, type Packet } from "../../engines/node-link/index.ts";

/** Kinds of packets beside those of the service that answers. */
const ELSEWHERE = 250;
const FAILURE = 251;

/** As JSON. */
interface CarriedError {
  readonly name: string;
  readonly message: string;
  readonly stack?: string | undefined;
  /** Of an error of the table. */
  readonly id?: string;
  readonly details?: ErrorDetails;
  readonly cause?: CarriedError;
  /** Set if agents' code threw something that is no error. */
  readonly thrown?: unknown;
  /** Of an instance that another node has taken. */
  readonly fence?: InstanceFencedError["fence"];
}

const CLASSES: ReadonlyMap<string, ErrorConstructor> = new Map(
  [Error, TypeError, RangeError, SyntaxError, ReferenceError, EvalError, URIError].map((type) => [
    type.name,
    type,
  ]),
);

export function encodeFailure(error: unknown): Buffer {
  if (error instanceof InstanceElsewhereError) return encodePacket(ELSEWHERE, [error.node]);
  return encodePacket(FAILURE, [JSON.stringify(toCarried(error))]);
}

/** Throws the failure that the packet carries, if it carries one. */
export function throwCarried({ kind, texts: [text] }: Packet): void {
  if (kind === ELSEWHERE) throw new InstanceElsewhereError(text ?? null);
  if (kind !== FAILURE) return;
  const carried = JSON.parse(text ?? "{}") as Partial<CarriedError>;
  // oxlint-disable-next-line typescript/only-throw-error -- what the agent's code threw
  throw "thrown" in carried ? carried.thrown : fromCarried(carried);
}

export function toCarried(error: unknown): CarriedError {
  if (!(error instanceof Error)) return { name: "Error", message: "", thrown: toPlain(error) };
  const { name, message, stack } = error;
  if (!(error instanceof SignalboxError)) return { name, message, stack };
  const { id, status, headers, fields, param, reason } = error;
  return {
    name,
    message,
    id,
    ...(error.cause === undefined ? {} : { cause: toCarried(error.cause) }),
    details: {
      status,
      headers,
      fields,
      ...(param === null ? {} : { param }),
      ...(reason === null ? {} : { reason }),
    },
    ...(error instanceof InstanceFencedError ? { fence: error.fence } : {}),
  };
}

export function fromCarried(carried: Partial<CarriedError>): Error {
  const { name, message = "", stack, id, details, cause, fence } = carried;
  if (fence !== undefined) return new InstanceFencedError(fence);
  // A node of another version may know errors that this one does not.
  if (id !== undefined)
    return new SignalboxError(isKnown(id) ? id : "internal", {
      ...details,
      message,
      ...(cause === undefined ? {} : { cause: fromCarried(cause) }),
    });
  const type = CLASSES.get(name ?? "");
  const error = type === undefined ? new Error(message) : new type(message);
  if (type === undefined)
    Object.defineProperty(error, "name", { value: name, configurable: true, writable: true });
  if (stack !== undefined) error.stack = stack;
  return error;
}

/** As JSON passes it on; null for a value that has no JSON. */
function toPlain(value: unknown): unknown {
  try {
    return JSON.parse(JSON.stringify(value) ?? "null");
  } catch {
    return null;
  }
}

function isKnown(id: string): id is keyof typeof ERROR_TABLE {
  return Object.hasOwn(ERROR_TABLE, id);
}
