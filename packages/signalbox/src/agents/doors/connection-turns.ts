/**
 * What happens on a WebSocket connection, as turns of its instance: joining, method calls, state from the client, other messages, closing.
 *
 * Invariants:
 * 1. A joining connection receives the identity frame and then exactly one state frame, at the moment in which it starts to receive
 *    broadcasts: it misses no change and receives none twice.
 * 2. A connection that resumes, because its instance has moved here, runs no hook. It receives what the instance has broadcast since it is here, and
 *    the state.
 * 3. Joining and closing do not wait for the turns of others. The messages of a connection wait for its `onConnect`, and its `onClose` for
 *    its messages to begin.
 */
import {
  parseClientFrame,
  type RpcRequestFrame,
  type ServerFrame,
  SignalboxError,
} from "@signalbox/protocol";
import type { AnyAgent } from "../api/agent.ts";
import { InstanceElsewhereError, InstanceFencedError } from "../../engines/instance-store/index.ts";
import type { ConnectionContext } from "../api/connection.ts";
import type { AgentOrigin } from "../api/current-agent.ts";
import type { Instance } from "../instance/instance.ts";
import type { LiveConnection } from "../connections/live-connection.ts";
import { callMethod, findCallable, publicMessage, streamMethod, toJson } from "../instance/method-call.ts";
import { StreamingResponse } from "../api/streaming-response.ts";
import { toFrame } from "../../engines/http-server/index.ts";
import { afterMicrotasks } from "../../engines/turn-runtime/index.ts";

const MAX_TAGS = 10;
const MAX_TAG_LENGTH = 256;

type FindInstance = () => Instance;

/**
 * Runs beside a turn that is at an await: a new tab is greeted while another one's call runs. `onReady` is called when the agent's hooks have
 * ended: the connection's own messages wait for that.
 */
export async function connect(
  find: FindInstance,
  connection: LiveConnection,
  context: ConnectionContext,
  onReady: () => void,
): Promise<void> {
  const instance = find();
  const origin: AgentOrigin = {
    connection,
    get request() {
      return context.request;
    },
  };
  await instance.run({
    kind: "connect",
    label: connection.id,
    origin,
    isConcurrent: true,
    timeoutMs: instance.eventTimeoutMs,
    body: async ({ agent }) => {
      if (!instance.definition.hasMethod("getConnectionTags"))
        await join(instance, connection, agent, context);
      else {
        const found = agent.getConnectionTags(connection, context);
        connection.tags = checkTags(connection.id, found instanceof Promise ? await found : found);
        const joined = () => join(instance, connection, agent, context);
        await (found instanceof Promise ? betweenSegments(joined) : joined());
      }
      onReady();
    },
  });
}

/** Not `async`: everything up to the greeting happens at once, while no other turn is in the middle of its segment. */
function join(
  instance: Instance,
  connection: LiveConnection,
  agent: AnyAgent,
  context: ConnectionContext,
): void | Promise<void> {
  if (agent.shouldConnectionBeReadonly(connection, context)) connection.isReadonlyForAgent = true;
  connection.hasProtocol = agent.shouldSendProtocolMessages(connection, context);
  connection.isAdmitted = true;
  if (connection.isClosed) return undefined;
  instance.group.join(connection);
  if (connection.hasProtocol) greet(instance, connection, agent.state);
  connection.reportJoined();
  instance.recordConnect(connection.id);
  return agent.onConnect(connection, context);
}

/** A greeting inside the segment of another turn would be dropped if that turn failed. */
function betweenSegments<T>(work: () => T | Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    afterMicrotasks(() => {
      try {
        resolve(work());
      } catch (error) {
        reject(error);
      }
    });
  });
}

function greet(instance: Instance, connection: LiveConnection, state: unknown): void {
  if (instance.definition.sendsIdentity) {
    const { agent: kebab, name } = instance.ref;
    const identity = { type: "cf_agent_identity", name, agent: kebab } as const;
    send(connection, state === undefined ? identity : { ...identity, stateFollows: true });
  }
  if (state !== undefined) send(connection, { type: "cf_agent_state", state });
}

/** The instance has moved to this node with its connections. Rejects with `InstanceElsewhereError` if it is not here. */
export function resume(instance: Instance, connections: () => Iterable<LiveConnection>): Promise<void> {
  return instance.run({
    kind: "inspect",
    label: "resumed connections",
    isConcurrent: true,
    body: ({ agent }) => {
      const resumed = [...connections()];
      if (resumed.length === 0) return;
      const catchUps = resumed.map((connection) => instance.group.resume(connection));
      const state: unknown = agent.state;
      const json = state === undefined ? null : toJson({ type: "cf_agent_state", state });
      const frame = json == null ? null : toFrame(json);
      instance.group.output(() => {
        for (const catchUp of catchUps) catchUp(frame);
      });
    },
  });
}

/** True if the instance is not at this node: what was asked of it did not happen. */
export function isElsewhere(error: unknown): boolean {
  return error instanceof InstanceElsewhereError || error instanceof InstanceFencedError;
}

/**
 * Resolves when the turn of the message has ended, successfully or not. False: the message certainly did not run, because the instance is at another
 * node.
 */
export async function receive(
  find: FindInstance,
  connection: LiveConnection,
  message: string | Buffer,
): Promise<boolean> {
  const frame = typeof message === "string" ? parseClientFrame(message) : null;
  let hasBegun = false;
  const begin = () => {
    hasBegun = true;
    connection.beginMessage();
  };
  try {
    if (frame?.type === "rpc") await call(find, connection, frame, begin);
    else if (frame?.type === "cf_agent_state") await setState(find(), connection, frame.state, begin);
    else await forward(find(), connection, message, begin);
  } catch (error) {
    if (!hasBegun && isElsewhere(error)) {
      connection.messageRefused();
      return false;
    }
    // The message could not be queued, or the agent's handler failed, which the instance has reported.
    if (error instanceof SignalboxError && error.id === "overloaded")
      sendNow(connection, { type: "cf_agent_state_error", error: error.message });
  }
  if (!hasBegun) connection.messageRefused();
  return true;
}

/** For an agent that has an `onClose` and a connection that had joined. */
export function closed(
  instance: Instance,
  connection: LiveConnection,
  code: number,
  reason: string,
): Promise<void> {
  const turn = instance.run<void>({
    kind: "close",
    label: connection.id,
    isInternal: true,
    origin: { connection },
    // `onClose` follows the messages that arrived before it, and does not wait for the turns of others.
    isConcurrent: !connection.hasWaitingMessages,
    timeoutMs: instance.eventTimeoutMs,
    body: ({ agent }) => {
      instance.recordDisconnect(connection.id, code);
      // 1006 means that the socket ended without a close frame (RFC 6455, section 7.4.1).
      const wasClean = code !== 1006;
      connection.listeners?.dispatch(new CloseEvent("close", { code, reason, wasClean }));
      return agent.onClose(connection, code, reason, wasClean);
    },
  });
  return turn.finally(() => connection.dropListeners());
}

async function call(
  find: FindInstance,
  connection: LiveConnection,
  frame: RpcRequestFrame,
  begin: () => void,
): Promise<void> {
  const { id, method, args } = frame;
  const origin = connection.asCaller;
  let isAnswered = false;
  let hasBegun = false;
  const check = () => {
    hasBegun = true;
    begin();
  };
  const onOutcome = (error: unknown, result: string | undefined) => {
    if (!hasBegun && isElsewhere(error)) return;
    isAnswered = true;
    if (error !== null) sendFailure(connection, id, error);
    else {
      const resultPart = result === undefined ? "" : `,"result":${result}`;
      const text = `{"type":"rpc","id":${JSON.stringify(id)},"success":true${resultPart},"done":true}`;
      connection.write(toFrame(text));
    }
  };
  try {
    const instance = find();
    const { streaming, concurrent: isConcurrent } = findCallable(instance.definition, method);
    if (streaming === true) await stream(instance, connection, frame, isConcurrent, check);
    else await callMethod(instance, method, args, { check, onOutcome, origin, isConcurrent });
  } catch (error) {
    if (!hasBegun && isElsewhere(error)) throw error;
    if (!isAnswered) sendFailure(connection, id, error);
  }
}

/** The stream ends with its socket. No frame follows its last one, also if the method fails. */
async function stream(
  instance: Instance,
  connection: LiveConnection,
  { id, method, args }: RpcRequestFrame,
  isConcurrent: boolean | undefined,
  check: () => void,
): Promise<void> {
  let isEnded = false;
  const response = new StreamingResponse((event) => {
    const frame: ServerFrame =
      event.kind === "error"
        ? { type: "rpc", id, success: false, error: event.message }
        : { type: "rpc", id, success: true, result: event.value, done: event.kind === "end" };
    if (event.kind === "chunk") send(connection, frame);
    else connection.sendThen(toJson(frame) ?? "null", () => (isEnded = true));
  });
  const forget = connection.onEnd(() => response.cut(new Error("the connection has closed")));
  try {
    await streamMethod(instance, method, args, response, {
      check,
      origin: connection.asCaller,
      isConcurrent,
    });
  } catch (error) {
    // The last frame of a failed segment has not left.
    if (!isEnded) throw error;
  } finally {
    forget();
  }
}

function sendFailure(connection: LiveConnection, id: string, error: unknown): void {
  sendNow(connection, { type: "rpc", id, success: false, error: publicMessage(error) });
}

/** A client's state is accepted as a whole or refused; after a refusal the client receives the current state. */
async function setState(
  instance: Instance,
  connection: LiveConnection,
  state: unknown,
  begin: () => void,
): Promise<void> {
  try {
    await instance.run({
      kind: "state",
      label: connection.id,
      origin: connection.asCaller,
      body: (live) => {
        begin();
        connection.requireWritable();
        live.writeState(state, connection);
      },
    });
  } catch (error) {
    if (isElsewhere(error)) throw error;
    const isReadonly = error instanceof SignalboxError && error.id === "agent_readonly";
    await refuse(instance, connection, isReadonly ? error.message : "State update rejected");
  }
}

async function forward(
  instance: Instance,
  connection: LiveConnection,
  message: string | Buffer,
  begin: () => void,
): Promise<void> {
  const received = typeof message === "string" ? message : toArrayBuffer(message);
  try {
    await instance.run({
      kind: "message",
      label: connection.id,
      origin: connection.asCaller,
      ...(typeof message === "string" ? { cause: { message } } : {}),
      body: ({ agent }) => {
        begin();
        connection.requireMessages();
        connection.listeners?.dispatch(new MessageEvent("message", { data: received }));
        return agent.onMessage(connection, received);
      },
    });
  } catch (error) {
    if (!(error instanceof SignalboxError) || error.id !== "agent_readonly") throw error;
    await refuse(instance, connection, error.message);
  }
}

/** A copy: the library may reuse the memory around the message. */
function toArrayBuffer({ buffer, byteOffset, byteLength }: Buffer): ArrayBuffer {
  return (buffer as ArrayBuffer).slice(byteOffset, byteOffset + byteLength);
}

function refuse(instance: Instance, connection: LiveConnection, error: string): Promise<void> {
  return instance.run({
    kind: "state",
    label: connection.id,
    body: ({ agent }) => {
      send(connection, { type: "cf_agent_state_error", error });
      const state: unknown = agent.state;
      if (state !== undefined && connection.hasProtocol) send(connection, { type: "cf_agent_state", state });
    },
  });
}

function send(connection: LiveConnection, frame: ServerFrame): void {
  connection.send(toJson(frame) ?? "null");
}

function sendNow(connection: LiveConnection, frame: ServerFrame): void {
  connection.write(toFrame(JSON.stringify(frame)));
}

function checkTags(id: string, tags: readonly string[]): string[] {
  if (tags.length > MAX_TAGS - 1)
    throw new RangeError(`a connection has at most ${MAX_TAGS - 1} tags in addition to its id`);
  for (const tag of tags) {
    if (typeof tag !== "string" || tag === "" || tag.length > MAX_TAG_LENGTH)
      throw new RangeError(`a tag of a connection is a string of 1 to ${MAX_TAG_LENGTH} characters`);
  }
  return [id, ...tags.filter((tag) => tag !== id)];
}
