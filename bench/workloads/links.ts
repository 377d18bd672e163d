/** One hop between two nodes: 4 KB there, 100 bytes back, 64 at a time. Both ends run in this process, so its CPU time is that of both. */
import { type HopPair, openHopPair } from "../support/hops.ts";
import type { Workload } from "../support/workload.ts";

const HOPS = 20_000;
const IN_FLIGHT = 64;
const PLAIN = "a hop over TCP";
const ENCRYPTED = "a hop over TLS";
const MESSAGE = "a message of a WebSocket";
const OBJECT = "a call of an object";

async function hop(run: () => Promise<unknown>, count: number): Promise<void> {
  let left = count;
  const worker = async () => {
    while (left-- > 0) await run();
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, worker));
}

async function start() {
  const [plain, encrypted] = [await openHopPair(false), await openHopPair(true)];
  const runs: Readonly<Record<string, HopPair["call"]>> = {
    [PLAIN]: plain.call,
    [ENCRYPTED]: encrypted.call,
    [MESSAGE]: plain.message,
    [OBJECT]: plain.object,
  };
  return {
    async measure(scenario: string) {
      const run = runs[scenario] ?? plain.call;
      await hop(run, 2000);
      const before = process.cpuUsage();
      const startedAt = performance.now();
      await hop(run, HOPS);
      const { user, system } = process.cpuUsage(before);
      return {
        cpu: (user + system) / HOPS,
        rate: (HOPS * 1000) / (performance.now() - startedAt),
      };
    },
    async stop() {
      await Promise.all([plain.close(), encrypted.close()]);
    },
  };
}

const METRICS = [
  { name: "cpu", unit: "µs", better: "lower" },
  { name: "rate", unit: "hops/s", better: "higher" },
] as const;

export const workload: Workload = {
  name: "links",
  summary: "a hop between two nodes, 4 KB there and 100 bytes back, 64 in flight, CPU time of both ends",
  rounds: 5,
  contenders: [{ name: "signalbox", start }],
  scenarios: [PLAIN, ENCRYPTED, MESSAGE, OBJECT].map((name) => ({ name, metrics: METRICS })),
  goals: [
    {
      text: "a hop costs at most 40 µs of CPU time at both ends together",
      isMet: (median) => (median("signalbox", PLAIN, "cpu") ?? Infinity) <= 40,
    },
    {
      text: "a message of a WebSocket costs at most 40 µs of CPU time at both ends together",
      isMet: (median) => (median("signalbox", MESSAGE, "cpu") ?? Infinity) <= 40,
    },
  ],
};
