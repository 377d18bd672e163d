/**
 * The frames of a connection to an instance: the default WebSocket protocol of the public `agents` package, whose clients work
 * unmodified. All frames are JSON text. Text from a client that is not one of its two frames is a message for the agent.
 */

/** Client → server: call a method. */
export interface RpcRequestFrame {
  readonly type: "rpc";
  readonly id: string;
  readonly method: string;
  readonly args: readonly unknown[];
}

/** Client → server: replace the state. Server → client: the current state. */
export interface StateFrame {
  readonly type: "cf_agent_state";
  readonly state: unknown;
}

export type ClientFrame = RpcRequestFrame | StateFrame;

/** First frame of every connection. `stateFollows`: a state frame is next, and a client should wait for it before it is ready. */
export interface IdentityFrame {
  readonly type: "cf_agent_identity";
  readonly name: string;
  readonly agent: string;
  readonly stateFollows?: true;
}

export interface StateErrorFrame {
  readonly type: "cf_agent_state_error";
  readonly error: string;
}

export type RpcResponseFrame =
  | {
      readonly type: "rpc";
      readonly id: string;
      readonly success: true;
      readonly result?: unknown;
      readonly done: boolean;
    }
  | { readonly type: "rpc"; readonly id: string; readonly success: false; readonly error: string };

export type ServerFrame = IdentityFrame | StateFrame | StateErrorFrame | RpcResponseFrame;

/** Whitespace that JSON allows before an object. */
const INDENTED_OBJECT = /^[ \t\r\n]+\{/;

/** Parses a client frame. Null if the text is not a client frame. */
export function parseClientFrame(text: string): ClientFrame | null {
  // Most other messages are not objects; this check is cheaper than parsing.
  if (text.charCodeAt(0) !== 0x7b && !INDENTED_OBJECT.test(text)) return null;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  return isRpcRequest(value) || isState(value) ? value : null;
}

function isRpcRequest(value: unknown): value is RpcRequestFrame {
  const frame = value as Partial<RpcRequestFrame>;
  return (
    frame.type === "rpc" &&
    typeof frame.id === "string" &&
    typeof frame.method === "string" &&
    Array.isArray(frame.args)
  );
}

function isState(value: unknown): value is StateFrame {
  return (value as Partial<StateFrame>).type === "cf_agent_state" && Object.hasOwn(value as object, "state");
}

/** The name of an agent in URLs: `-` before each capital, then lower case; a name in capitals only is converted to lower case; `_` becomes `-`. */
export function kebabCase(name: string): string {
  if (name === name.toUpperCase() && name !== name.toLowerCase()) {
    return name.toLowerCase().replaceAll("_", "-");
  }
  return name
    .replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
    .replace(/^-/, "")
    .replaceAll("_", "-")
    .replace(/-$/, "");
}
