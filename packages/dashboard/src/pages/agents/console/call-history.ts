/** The calls that were made from this page, for as long as the page is open: arguments may be secret, so they are stored nowhere. */
import { useSyncExternalStore } from "react";

export interface PastCall {
  readonly id: number;
  readonly method: string;
  readonly args: readonly unknown[];
  readonly tookMs: number;
  readonly hasFailed: boolean;
}

const KEPT = 20;
const calls = new Map<string, readonly PastCall[]>();
const listeners = new Set<() => void>();
const NONE: readonly PastCall[] = [];
let lastId = 0;

export function addCall(agent: string, call: Omit<PastCall, "id">): void {
  calls.set(agent, [{ ...call, id: ++lastId }, ...(calls.get(agent) ?? [])].slice(0, KEPT));
  for (const listener of listeners) listener();
}

/** The calls of all instances of the agent, newest first. */
export function useCallHistory(agent: string): readonly PastCall[] {
  return useSyncExternalStore(subscribe, () => calls.get(agent) ?? NONE);
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
