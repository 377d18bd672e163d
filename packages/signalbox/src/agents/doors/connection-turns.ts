/**
 * What happens on a live connection, as turns of its instance: joining, calls, state from a client, other messages, leaving.
 *
 * A joining connection gets the identity frame, then exactly one state frame, in the turn in which it becomes a receiver of broadcasts:
 * it misses no change and sees none twice.
 */
import {
  parseClientFrame,
  type RpcRequestFrame,
  type ServerFrame,
  SignalboxError,
} from "@signalbox/protocol";
import type { ConnectionContext } from "../api/connection.ts";
import type { Instance } from "../instance/instance.ts";
import { writeState } from "../instance/instance-host.ts";
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
  await instance.run({
    kind: "connect",
    label: connection.id,
    body: async () => {
      if (connection.isClosed) return;
      const { agent } = instance.parts;
      if (instance.definition.hasMethod("getConnectionTags")) {
        connection.tags = checkTags(connection.id, await agent.getConnectionTags(connection, context));
      }
      if (agent.shouldConnectionBeReadonly(connection, context)) connection.isReadonly = true;
      instance.group.join(connection);
      const state: unknown = agent.state;
      if (instance.definition.sendsIdentity) {
        const { agent: kebab, name } = instance.ref;
        const identity = { type: "cf_agent_identity", name, agent: kebab } as const;
        send(connection, state === undefined ? identity : { ...identity, stateFollows: true });
      }
      if (state !== undefined) send(connection, { type: "cf_agent_state", state });
      instance.activity.record("connect", instance.environment.clock.now(), { connection: connection.id });
      await agent.onConnect(connection, context);
    },
  });
}

/** Resolves when the message has been dealt with; never rejects over what the message asked for. */
export async function receive(
  find: FindInstance,
  connection: LiveConnection,
  message: string | Buffer,
): Promise<void> {
  const frame = typeof message === "string" ? parseClientFrame(message) : null;
  try {
    if (frame?.type === "rpc") await call(find, connection, frame);
    else if (frame?.type === "cf_agent_state") await setState(find(), connection, frame.state);
    else await passOn(find(), connection, message);
  } catch (error) {
    // The message could not even be queued, or the agent's handler failed, which it has been told of.
    if (error instanceof SignalboxError && error.id === "overloaded")
      sendNow(connection, { type: "cf_agent_state_error", error: error.message });
  }
}

/** For an agent that has an `onClose`, and a connection that had joined. */
export function closed(
  instance: Instance,
  connection: LiveConnection,
  code: number,
  reason: string,
): Promise<void> {
  return instance.run<void>({
    kind: "close",
    label: connection.id,
    isGated: false,
    body: () => {
      instance.recordDisconnect(connection.id, code);
      // 1006 is what a socket that ended without a goodbye reports (RFC 6455, section 7.4.1).
      return instance.parts.agent.onClose(connection, code, reason, code !== 1006);
    },
  });
}

async function call(find: FindInstance, connection: LiveConnection, frame: RpcRequestFrame): Promise<void> {
  const { id, method, args } = frame;
  const check = () => connection.requireWritable();
  let isTold = false;
  const tell = (error: unknown, result: string | undefined) => {
    isTold = true;
    if (error !== null) tellFailure(connection, id, error);
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
      await streamMethod(instance, method, args, emit, check);
      return;
    }
    await callMethod(instance, method, args, { check, tell });
  } catch (error) {
    if (!isTold) tellFailure(connection, id, error);
  }
}

function tellFailure(connection: LiveConnection, id: string, error: unknown): void {
  sendNow(connection, { type: "rpc", id, success: false, error: publicMessage(error) });
}

/** A client's state is taken as a whole or refused; after a refusal the client gets the state that really is, to drop its own. */
async function setState(instance: Instance, connection: LiveConnection, state: unknown): Promise<void> {
  try {
    await instance.run({
      kind: "state",
      label: connection.id,
      body: () => {
        connection.requireWritable();
        writeState(instance, instance.parts.state, state, connection);
      },
    });
  } catch (error) {
    const isReadonly = error instanceof SignalboxError && error.id === "agent_readonly";
    await refuse(instance, connection, isReadonly ? error.message : "State update rejected");
  }
}

async function passOn(
  instance: Instance,
  connection: LiveConnection,
  message: string | Buffer,
): Promise<void> {
  try {
    await instance.run({
      kind: "message",
      label: connection.id,
      body: () => {
        connection.requireWritable();
        return instance.parts.agent.onMessage(connection, message);
      },
    });
  } catch (error) {
    if (!(error instanceof SignalboxError) || error.id !== "agent_readonly") throw error;
    await refuse(instance, connection, error.message);
  }
}

function refuse(instance: Instance, connection: LiveConnection, error: string): Promise<void> {
  return instance.run({
    kind: "state",
    label: connection.id,
    body: () => {
      send(connection, { type: "cf_agent_state_error", error });
      const state: unknown = instance.parts.agent.state;
      if (state !== undefined) send(connection, { type: "cf_agent_state", state });
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
    throw new RangeError(`a connection has at most ${MAX_TAGS - 1} tags beside its id`);
  for (const tag of tags) {
    if (typeof tag !== "string" || tag === "" || tag.length > MAX_TAG_LENGTH)
      throw new RangeError(`a connection's tag is text of 1 to ${MAX_TAG_LENGTH} characters`);
  }
  return [id, ...tags.filter((tag) => tag !== id)];
}
