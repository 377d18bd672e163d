/** One hop between two nodes: 4 KB there, 100 bytes back, 64 at a time. Both ends run in this process, so its CPU time is that of both. */
import { type LinkHandler, Links } from "../../packages/signalbox/src/engines/node-link/index.ts";
import type { Workload } from "../support/workload.ts";

const HOPS = 20_000;
const IN_FLIGHT = 64;
const PLAIN = "a hop over TCP";
const ENCRYPTED = "a hop over TLS";
const REQUEST = Buffer.alloc(4096, "x");
const ANSWER = Buffer.alloc(100, "y");

const handler: LinkHandler = {
  onCall: () => ANSWER,
  onStream: (_name, _payload, stream) => stream.reset(),
};

async function openPair(isEncrypted: boolean) {
  const open = (node: string) =>
    Links.listen(
      { host: "127.0.0.1", port: 0 },
      {
        self: { node, cluster: "bench" },
        security: { secret: "only for this benchmark", isEncrypted },
        handler,
      },
    );
  const [one, two] = await Promise.all([open("1"), open("2")]);
  one.setPeers([{ node: "2", host: "127.0.0.1", port: two.port, isDialled: false }]);
  two.setPeers([{ node: "1", host: "127.0.0.1", port: one.port, isDialled: true }]);
  while (two.to("1") === null || one.to("2") === null) await new Promise((resolve) => setTimeout(resolve, 5));
  return { one, two };
}

async function hop(links: Links, count: number): Promise<void> {
  let left = count;
  const run = async () => {
    while (left-- > 0) await links.call("1", "deliver", REQUEST);
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, run));
}

async function start() {
  const pairs = { [PLAIN]: await openPair(false), [ENCRYPTED]: await openPair(true) };
  return {
    async measure(scenario: string) {
      const pair = pairs[scenario === PLAIN ? PLAIN : ENCRYPTED];
      await hop(pair.two, 2000);
      const before = process.cpuUsage();
      const startedAt = performance.now();
      await hop(pair.two, HOPS);
      const { user, system } = process.cpuUsage(before);
      return {
        cpu: (user + system) / HOPS,
        rate: (HOPS * 1000) / (performance.now() - startedAt),
      };
    },
    async stop() {
      await Promise.all(Object.values(pairs).flatMap(({ one, two }) => [one.close(), two.close()]));
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
  scenarios: [
    { name: PLAIN, metrics: METRICS },
    { name: ENCRYPTED, metrics: METRICS },
  ],
  goals: [
    {
      text: "a hop costs at most 40 µs of CPU time at both ends together",
      isMet: (median) => (median("signalbox", PLAIN, "cpu") ?? Infinity) <= 40,
    },
  ],
};
