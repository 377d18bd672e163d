/** Asks each node again and again whether it is ready, and records the answers. */
import { setTimeout as sleep } from "node:timers/promises";
import type { ChaosNode } from "./cluster/chaos-node.ts";

const INTERVAL_MS = 100;
const TIMEOUT_MS = 2000;

export async function isReady(node: ChaosNode): Promise<boolean> {
  const { url } = node;
  if (url === null || node.isPaused) return false;
  try {
    const answer = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(TIMEOUT_MS) });
    await answer.body?.cancel();
    return answer.status === 200;
  } catch {
    return false;
  }
}

/** Runs until the signal aborts. */
export async function watchReadiness(node: ChaosNode, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const askedAt = performance.now();
    const ready = await isReady(node);
    node.readiness.report(askedAt, ready);
    if (ready) node.isolation.reportReady(askedAt);
    await sleep(INTERVAL_MS);
  }
}

/** Resolves with the time that it took; null if it took too long. */
export async function allReady(nodes: readonly ChaosNode[], withinMs: number): Promise<number | null> {
  const startedAt = performance.now();
  for (;;) {
    const ready = await Promise.all(nodes.map(isReady));
    if (ready.every(Boolean)) return performance.now() - startedAt;
    if (performance.now() >= startedAt + withinMs) return null;
    await sleep(INTERVAL_MS);
  }
}
