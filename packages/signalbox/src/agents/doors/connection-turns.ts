/**
 * What happens on a WebSocket connection, as turns of its instance: joining, method calls, state from the client, other messages, closing.
 *
 * A joining connection receives the identity frame and then exactly one state frame, in the turn in which it starts to receive broadcasts: it
 * misses no change and receives none twice.
 */
import {
  parseClientFrame,
  type RpcRequestFrame,
  type ServerFrame,
  SignalboxError,
} from "@signalbox/protocol";
import type { ConnectionContext } from "../api/connection.ts";
import type { AgentOrigin } from "../api/current-agent.ts";
import type { Instance } from "../instance/instance.ts";
import type { LiveConnection } from "../connections/live-connection.ts";
import { callMethod, findCallable, publicMessage, streamMethod, toJson } from "../instance/method-call.ts";
import type { StreamEvent } from "../api/streaming-response.ts";
import { toFrame } from "../../engines/http-server/index.ts";

const MAX_TAGS = 10;
const MAX_TAG_LENGTH = 256;

type FindInstance = () => Instance;

export async function connect(
  find: FindInstance,
  connection: LiveConnection,
  context: ConnectionContext,
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
    body: async ({ agent }) => {
      if (connection.isClosed) return;
      if (instance.definition.hasMethod("getConnectionTags")) {
        connection.tags = checkTags(connection.id, await agent.getConnectionTags(connection, context));
      }
      if (agent.shouldConnectionBeReadonly(connection, context)) connection.isReadonlyForAgent = true;
      connection.hasProtocol = agent.shouldSendProtocolMessages(connection, context);
      instance.group.join(connection);
      if (connection.hasProtocol) greet(instance, connection, agent.state);
      instance.recordConnect(connection.id);
      await agent.onConnect(connection, context);
    },
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

/** Resolves when the turn of the message has ended, successfully or not. */
export async function receive(
  find: FindInstance,
  connection: LiveConnection,
  message: string | Buffer,
): Promise<void> {
  const frame = typeof message === "string" ? parseClientFrame(message) : null;
  try {
    if (frame?.type === "rpc") await call(find, connection, frame);
    else if (frame?.type === "cf_agent_state") await setState(find(), connection, frame.state);
    else await forward(find(), connection, message);
  } catch (error) {
    // The message could not be queued, or the agent's handler failed, which the instance has reported.
    if (error instanceof SignalboxError && error.id === "overloaded")
      sendNow(connection, { type: "cf_agent_state_error", error: error.message });
  }
}

/** For an agent that has an `onClose` and a connection that had joined. */
export function closed(
  instance: Instance,
  connection: LiveConnection,
  code: number,
  reason: string,
): Promise<void> {
  return instance.run<void>({
    kind: "close",
    label: connection.id,
    isInternal: true,
    origin: { connection },
    body: ({ agent }) => {
      instance.recordDisconnect(connection.id, code);
      // 1006 means that the socket ended without a close frame (RFC 6455, section 7.4.1).
      const wasClean = code !== 1006;
      connection.listeners?.dispatch(new CloseEvent("close", { code, reason, wasClean }));
      return agent.onClose(connection, code, reason, wasClean);
    },
  });
}

async function call(find: FindInstance, connection: LiveConnection, frame: RpcRequestFrame): Promise<void> {
  const { id, method, args } = frame;
  const check = () => connection.requireCredential();
  const origin = connection.asCaller;
  let isAnswered = false;
  const onOutcome = (error: unknown, result: string | undefined) => {
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
    const { streaming } = findCallable(instance.definition, method);
    if (streaming === true) {
      const emit = (event: StreamEvent) => {
        if (event.kind === "error")
          send(connection, { type: "rpc", id, success: false, error: event.message });
        else
          send(connection, {
            type: "rpc",
            id,
            success: true,
            result: event.value,
            done: event.kind === "end",
          });
      };
      await streamMethod(instance, method, args, { emit, check, origin });
      return;
    }
    await callMethod(instance, method, args, { check, onOutcome, origin });
  } catch (error) {
    if (!isAnswered) sendFailure(connection, id, error);
  }
}

function sendFailure(connection: LiveConnection, id: string, error: unknown): void {
  sendNow(connection, { type: "rpc", id, success: false, error: publicMessage(error) });
}

/** A client's state is accepted as a whole or refused; after a refusal the client receives the current state. */
async function setState(instance: Instance, connection: LiveConnection, state: unknown): Promise<void> {
  try {
    await instance.run({
      kind: "state",
      label: connection.id,
      origin: connection.asCaller,
      body: (live) => {
        connection.requireCredential();
        connection.requireWritable();
        live.writeState(state, connection);
      },
    });
  } catch (error) {
    const isReadonly = error instanceof SignalboxError && error.id === "agent_readonly";
    await refuse(instance, connection, isReadonly ? error.message : "State update rejected");
  }
}

async function forward(
  instance: Instance,
  connection: LiveConnection,
  message: string | Buffer,
): Promise<void> {
  const received = typeof message === "string" ? message : toArrayBuffer(message);
  try {
    await instance.run({
      kind: "message",
      label: connection.id,
      origin: connection.asCaller,
      body: ({ agent }) => {
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
