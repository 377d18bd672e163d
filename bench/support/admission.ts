/** How long calls wait for their limits: four nodes in this process on one PostgreSQL, 16 callers each, calls of ten milliseconds. */
import type { Grant } from "../../packages/signalbox/src/gateway/limits/grant.ts";
import { Refusal } from "../../packages/signalbox/src/gateway/limits/limit-refusal.ts";
import {
  demandOf,
  gatewayWith,
  openSharedCluster,
  rulesOf,
  type SharedNode,
} from "../../packages/signalbox/src/gateway/limits/shared-limits-fixture.ts";
import { percentile } from "./statistics.ts";

const NODES = 4;
const CALLERS = 16;
const CALL_MS = 10;
const STEP = demandOf(0.001, 30);

export interface Admissions {
  measure(durationMs: number): Promise<{ p50: number; p99: number; waited: number }>;
  stop(): Promise<void>;
}

export async function openAdmissions(rules: readonly object[]): Promise<Admissions> {
  const cluster = await openSharedCluster();
  const nodes: SharedNode[] = [];
  for (let i = 0; i < NODES; i++) nodes.push(await cluster.openNode());
  const gateway = gatewayWith({ rate_limiting_limit: 10_000_000, rate_limiting_interval: 3600 }, rules);
  return {
    async measure(durationMs) {
      const times: number[] = [];
      let waited = 0;
      const end = performance.now() + durationMs;
      const caller = async (node: SharedNode) => {
        while (performance.now() < end) {
          const call = rulesOf(node, gateway);
          const startedAt = performance.now();
          let isWaiting = false;
          const grants: Grant[] = [];
          for (const take of [() => call.arrive([STEP]), () => call.reserve([STEP])]) {
            let taken = take();
            if (taken instanceof Promise) {
              isWaiting = true;
              taken = await taken;
            }
            if (taken instanceof Refusal) throw taken.toError();
            grants.push(taken);
          }
          times.push((performance.now() - startedAt) * 1000);
          if (isWaiting) waited += 1;
          await new Promise((resolve) => setTimeout(resolve, CALL_MS));
          const used = { provider: STEP.provider, models: [STEP.model], cost: 0.0005, tokens: 20 };
          call.settle(grants.pop() ?? null, [used]);
          for (const grant of grants) grant.release();
        }
      };
      await Promise.all(nodes.flatMap((node) => Array.from({ length: CALLERS }, () => caller(node))));
      const sorted = times.sort((a, b) => a - b);
      return {
        p50: percentile(sorted, 0.5),
        p99: percentile(sorted, 0.99),
        waited: (100 * waited) / times.length,
      };
    },
    stop: () => cluster.close(),
  };
}
