/** The React hook: state and methods of an instance in a component. Connects fresh callbacks to a stable connection. */
import { useCallback, useEffect, useMemo, useSyncExternalStore } from "react";
import {
  AgentConnection,
  type AgentConnectionOptions,
  type ConnectionSnapshot,
  type ConnectionStatus,
} from "../agent/agent-connection.ts";
import type { AgentStub, StateOf } from "../agent/agent-shape.ts";
import { useFresh } from "./fresh-callbacks.ts";
import { useConnectionLife, useStableConnection } from "./stable-connection.ts";

export interface UseAgentOptions<Agent = unknown> extends AgentConnectionOptions {
  /** False disconnects the component. Default true. */
  readonly enabled?: boolean;
  /** The state was changed by the server or by this component. */
  readonly onStateUpdate?: (state: StateOf<Agent>, source: "server" | "client") => void;
  /** The server rejected a state update, which was reverted. */
  readonly onStateError?: (message: string) => void;
  readonly onStatus?: (status: ConnectionStatus) => void;
  /** A message of the agent. */
  readonly onMessage?: (text: string) => void;
}

export interface UseAgentResult<Agent = unknown> extends ConnectionSnapshot<StateOf<Agent>> {
  readonly setState: AgentConnection<Agent>["setState"];
  readonly call: AgentConnection<Agent>["call"];
  readonly stream: AgentConnection<Agent>["stream"];
  readonly send: AgentConnection<Agent>["send"];
  /** The agent's methods as functions; the same object in every render. */
  readonly stub: AgentStub<Agent>;
  /** The same object as long as the instance is the same. */
  readonly connection: AgentConnection<Agent>;
}

const SERVER_SNAPSHOT = { status: "idle", state: undefined, identity: null, error: null } as const;

/**
 * Connects a component to one instance. Reconnects only if `url`, `agent`, `name`, `account`, `query` or a `token` string changes. Callbacks,
 * a `token` function and the other options may be new in every render.
 */
export function useAgent<Agent = unknown>(options: UseAgentOptions<Agent>): UseAgentResult<Agent> {
  const fresh = useFresh(options);
  const held = useStableConnection(addressKey(options), () => {
    const { token } = options;
    const connectionOptions: AgentConnectionOptions =
      typeof token === "function" ? { ...options, token: () => currentToken(fresh.current) } : options;
    return new AgentConnection<Agent>(connectionOptions);
  });
  const { connection } = held;

  useEffect(() => {
    const stops = [
      connection.on("state", (state, source) => fresh.current.onStateUpdate?.(state, source)),
      connection.on("stateError", (message) => fresh.current.onStateError?.(message)),
      connection.on("status", (status) => fresh.current.onStatus?.(status)),
      connection.on("message", (text) => fresh.current.onMessage?.(text)),
    ];
    return () => stops.forEach((stop) => stop());
  }, [connection, fresh]);
  useConnectionLife(held, options.enabled ?? true);

  const subscribe = useCallback((onChange: () => void) => connection.on("change", onChange), [connection]);
  const snapshot = useSyncExternalStore(
    subscribe,
    () => connection.snapshot,
    () => SERVER_SNAPSHOT,
  );
  const methods = useMemo(
    () => ({
      setState: connection.setState.bind(connection),
      call: connection.call.bind(connection),
      stream: connection.stream.bind(connection),
      send: connection.send.bind(connection),
      stub: connection.stub,
      connection,
    }),
    [connection],
  );
  return useMemo(() => ({ ...snapshot, ...methods }), [snapshot, methods]);
}

function currentToken({ token }: AgentConnectionOptions): string | undefined | Promise<string | undefined> {
  return typeof token === "function" ? token() : token;
}

/** The values that identify instance and user. */
function addressKey({ url, agent, name, account, query, token }: AgentConnectionOptions): string {
  const parameters = Object.entries(query ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
  const credential = typeof token === "string" ? token : null;
  return JSON.stringify([url?.toString(), agent, name, account, parameters, credential]);
}
