/** What the owner has to know of a WebSocket at the edge, as a value that can be sent. */
import type { ConnectionContext } from "../../api/connection.ts";
import type { ConnectionFacts } from "../../connections/connection-socket.ts";
import { decodeValue, encodeValue, ItemError } from "./socket-items.ts";

export interface OpenedConnection {
  readonly id: string;
  readonly uri: string;
  readonly isReadonly: boolean;
  /** The request of the handshake and the identity of the caller; null for a connection that was joined before: its hooks have run. */
  readonly context: SentContext | null;
  /** Null for a new connection. */
  readonly facts: ConnectionFacts | null;
}

interface SentContext {
  readonly url: string;
  readonly method: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly props: unknown;
}

/** Throws for props that are not plain values: functions, for example, cannot be sent to another node. */
export function encodeOpened(opened: OpenedConnection): Buffer {
  return encodeValue(opened);
}

export function decodeOpened(payload: Buffer): OpenedConnection {
  const value = decodeValue(payload) as Partial<OpenedConnection> | null | undefined;
  if (
    typeof value?.id !== "string" ||
    typeof value.uri !== "string" ||
    (value.facts ?? value.context ?? null) === null
  )
    throw new ItemError("a connection is malformed");
  return {
    id: value.id,
    uri: value.uri,
    isReadonly: value.isReadonly === true,
    context: value.context ?? null,
    facts: value.facts == null ? null : checkFacts(value.facts),
  };
}

export function toSent({ request, props }: ConnectionContext): SentContext {
  return { url: request.url, method: request.method, headers: [...request.headers], props };
}

/** The request is made when an agent reads it. */
export function toContext(sent: SentContext): ConnectionContext {
  let request: Request | undefined;
  return {
    props: sent.props,
    get request() {
      request ??= new Request(sent.url, {
        method: sent.method,
        headers: sent.headers.map(([name, value]) => [name, value] as [string, string]),
      });
      return request;
    },
  };
}

/** A state that is no plain value becomes null: another node cannot have it. */
export function encodeFacts(facts: ConnectionFacts): Buffer {
  try {
    return encodeValue(facts);
  } catch {
    const { state, attachment } = facts;
    return encodeValue({ ...facts, state: sendable(state), attachment: sendable(attachment) });
  }
}

export function decodeFacts(payload: Buffer): ConnectionFacts {
  return checkFacts(decodeValue(payload));
}

function checkFacts(value: unknown): ConnectionFacts {
  const facts = value as Partial<ConnectionFacts> | null | undefined;
  if (!Array.isArray(facts?.tags) || typeof facts.joinedAt !== "number")
    throw new ItemError("the facts of a connection are malformed");
  return {
    tags: facts.tags.map(String),
    state: facts.state ?? null,
    attachment: facts.attachment ?? null,
    isReadonlyForAgent: facts.isReadonlyForAgent === true,
    hasProtocol: facts.hasProtocol !== false,
    joinedAt: facts.joinedAt,
  };
}

function sendable(value: unknown): unknown {
  try {
    encodeValue(value);
    return value;
  } catch {
    return null;
  }
}
