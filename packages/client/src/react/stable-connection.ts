/**
 * One connection for as long as a component means the same instance.
 *
 * 1. Rendering opens nothing: the connection object is made while rendering, its socket by the effect.
 * 2. The same address, however often it is rendered, is the same connection; another address is another connection.
 * 3. Strict Mode runs each effect, its cleanup and the effect again at once. The cleanup therefore only announces the end, and the
 *    second run takes that back: one socket, not two. A real unmount closes it in the next task.
 */
import { useEffect, useState } from "react";
import type { AgentConnection } from "../agent/agent-connection.ts";

/** A connection and the announcement of its end. */
export interface HeldConnection<Agent> {
  readonly key: string;
  readonly connection: AgentConnection<Agent>;
  /** Announced, not yet done; undefined when nobody wants to close. */
  closing: ReturnType<typeof setTimeout> | undefined;
}

/** `key` says which instance is meant; `create` runs when it changes and must open nothing. */
export function useStableConnection<Agent>(
  key: string,
  create: () => AgentConnection<Agent>,
): HeldConnection<Agent> {
  const [held, setHeld] = useState<HeldConnection<Agent>>(() => hold(key, create));
  if (held.key === key) return held;
  // React renders again at once with the new one; the cleanup of the old one's effect closes it.
  const next = hold(key, create);
  setHeld(next);
  return next;
}

/** Opens and closes with the component. To be used after whatever listens, so that listeners hear of the first attempt. */
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
