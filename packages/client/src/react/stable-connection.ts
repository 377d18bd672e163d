/**
 * One connection as long as a component uses the same instance.
 *
 * 1. Rendering opens no socket: rendering creates the connection object, and the effect opens the socket.
 * 2. All renders with the same address use the same connection; another address uses another connection.
 * 3. Strict Mode runs each effect, its cleanup and the effect again. The cleanup therefore schedules the close for the next task, and the
 *    second run cancels it, so that only one socket opens.
 */
import { useEffect, useState } from "react";
import type { AgentConnection } from "../agent/agent-connection.ts";

/** A connection and its scheduled close. */
export interface HeldConnection<Agent> {
  readonly key: string;
  readonly connection: AgentConnection<Agent>;
  /** Timer of the scheduled close; undefined if none is scheduled. */
  closing: ReturnType<typeof setTimeout> | undefined;
}

/** `key` identifies the instance. `create` is called when `key` changes and must not open a socket. */
export function useStableConnection<Agent>(
  key: string,
  create: () => AgentConnection<Agent>,
): HeldConnection<Agent> {
  const [held, setHeld] = useState<HeldConnection<Agent>>(() => hold(key, create));
  if (held.key === key) return held;
  // React renders again with the new connection; the cleanup of the old effect closes the old connection.
  const next = hold(key, create);
  setHeld(next);
  return next;
}

/** Opens and closes with the component. Must follow the effects that add listeners, so that they receive the first events. */
export function useConnectionLife<Agent>(held: HeldConnection<Agent>, isEnabled: boolean): void {
  useEffect(() => {
    if (!isEnabled) return;
    clearTimeout(held.closing);
    held.closing = undefined;
    held.connection.open();
    return () => {
      held.closing = setTimeout(() => held.connection.close(), 0);
    };
  }, [held, isEnabled]);
}

function hold<Agent>(key: string, create: () => AgentConnection<Agent>): HeldConnection<Agent> {
  return { key, connection: create(), closing: undefined };
}
