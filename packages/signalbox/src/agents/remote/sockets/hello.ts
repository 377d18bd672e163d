/** How a stream between an edge and an owner begins: the edge says hello in the payload, the owner answers with a welcome or resets the stream. */
import { ERROR_TABLE, type ErrorName, SignalboxError } from "@signalbox/protocol";
import { InstanceElsewhereError, InstanceFencedError } from "../../../engines/instance-store/index.ts";
import type { LinkFailure } from "../../../engines/node-link/index.ts";
import type { InstanceRef } from "../../instance/instance-ref.ts";
import { NotSentError } from "../../placement/placement.ts";
import { encodeItem, ITEM_KINDS, ItemError } from "./socket-items.ts";

/** The name of the streams. */
export const SOCKET_STREAMS = "agents.socket";

/** The version of the items. A node that knows another one refuses. */
const VERSION = 1;

export interface Hello {
  readonly session: string;
  readonly ref: InstanceRef;
  /** Continues a session after its stream broke. */
  readonly isContinued: boolean;
  /** How many items of the session the edge has. */
  readonly received: number;
  /** False: the connections were joined before, so that an instance that does not exist was destroyed. */
  readonly mayCreate: boolean;
}

export function encodeHello(hello: Hello): Buffer {
  return Buffer.from(JSON.stringify({ version: VERSION, ...hello }));
}

export function decodeHello(payload: Buffer): Hello {
  const value = parse(payload) as Partial<Record<keyof Hello | "version", unknown>> | null;
  const { account, agent, name } = (value?.ref ?? {}) as Partial<Record<keyof InstanceRef, unknown>>;
  if (value?.version !== VERSION) throw new ItemError("the nodes speak different versions about sockets");
  const { session, received } = value;
  if (
    typeof session !== "string" ||
    typeof received !== "number" ||
    typeof account !== "string" ||
    typeof agent !== "string" ||
    typeof name !== "string"
  )
    throw new ItemError("the hello of a node is malformed");
  return {
    session,
    received,
    ref: { account, agent, name },
    isContinued: value.isContinued === true,
    mayCreate: value.mayCreate === true,
  };
}

export interface Welcome {
  /** How many items of the session the owner has. */
  readonly received: number;
  /** The instance existed before this session. */
  readonly existed: boolean;
}

export function encodeWelcome(welcome: Welcome): Buffer[] {
  return encodeItem(ITEM_KINDS.welcome, Buffer.from(JSON.stringify(welcome)));
}

export function decodeWelcome(payload: Buffer): Welcome {
  const { received, existed } = (parse(payload) ?? {}) as Partial<Record<keyof Welcome, unknown>>;
  if (typeof received !== "number" || !Number.isSafeInteger(received) || received < 0)
    throw new ItemError("the welcome of a node is malformed");
  return { received, existed: existed === true };
}

/** The owner refuses a session for this reason. */
export function toRefusal(error: unknown): LinkFailure {
  if (error instanceof InstanceElsewhereError)
    return { code: "elsewhere", message: error.message, details: { node: error.node } };
  if (error instanceof SignalboxError) {
    // A node that stops hands its instances over; a fenced one has moved. Nothing was run.
    if (error.id === "stopping" || error instanceof InstanceFencedError)
      return { code: "elsewhere", message: error.message, details: { node: null } };
    return { code: "refused", message: error.message, details: { id: error.id } };
  }
  return { code: "refused", message: "Internal error", details: { id: "internal" } };
}

/** The session was not found: the owner has forgotten it, or is another process. */
export const UNKNOWN_SESSION: LinkFailure = { code: "unknown_session", message: "the session is not known" };

/** The edge looks for the instance elsewhere: its connections go on, and are no business of this owner any more. */
export const ABANDONED: LinkFailure = { code: "abandoned", message: "the connections follow their instance" };

/** The error of an attempt to begin a session. Unless the owner refused, nothing has happened: the edge has sent nothing but its hello. */
export function toOpenError({ code, message, details }: LinkFailure): Error {
  const { node = null, id } = (details ?? {}) as { node?: string | null; id?: string };
  if (code === "elsewhere") return new InstanceElsewhereError(node);
  if (code === "refused" && id !== undefined && Object.hasOwn(ERROR_TABLE, id))
    return new SignalboxError(id as ErrorName, { message });
  return new NotSentError(message);
}

function parse(payload: Buffer): unknown {
  try {
    return JSON.parse(payload.toString("utf8"));
  } catch (error) {
    throw new ItemError("a payload is not JSON", { cause: error });
  }
}
