/** How long calls wait for their limits: four nodes in this process on one PostgreSQL, 16 callers each, calls of ten milliseconds. */
import { Delay } from "../../packages/signalbox/src/gateway/step/delay.ts";
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
          for (const admit of [() => call.arrive([STEP]), () => call.reserve([STEP])]) {
            let admission = admit();
            while (admission instanceof Delay) {
              isWaiting = true;
              await admission.ready;
              admission = admit();
            }
            if (admission !== null) throw admission;
          }
          times.push((performance.now() - startedAt) * 1000);
          if (isWaiting) waited += 1;
          await new Promise((resolve) => setTimeout(resolve, CALL_MS));
          call.settle([{ provider: STEP.provider, models: [STEP.model], cost: 0.0005, tokens: 20 }]);
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
