/**
 * The frames of a live connection to an agent's instance: the default WebSocket protocol of the public `agents` package, so that its
 * clients work unmodified. All frames are JSON text. Whatever a client sends that is none of its two frames is a message for the
 * agent's own code.
 */

/** Client → server: call a method. */
export interface RpcRequestFrame {
  readonly type: "rpc";
  readonly id: string;
  readonly method: string;
  readonly args: readonly unknown[];
}

/** Client → server: replace the state. Server → client: the state as it is now. */
export interface StateFrame {
  readonly type: "cf_agent_state";
  readonly state: unknown;
}

export type ClientFrame = RpcRequestFrame | StateFrame;

/** First frame of every connection. `stateFollows` lets a client wait for the state before it calls itself ready. */
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

/** Blanks that JSON allows before an object. */
const INDENTED_OBJECT = /^[ \t\r\n]+\{/;

/** The client frame in a text, or null when the text is something else. */
export function parseClientFrame(text: string): ClientFrame | null {
  // Most of what is not a frame is not even an object; that is cheaper to see than to parse.
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

/** An agent's name in URLs: `-` before each capital, lower-cased; a name all in capitals is just lower-cased; `_` becomes `-`. */
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
