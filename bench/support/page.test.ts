import { expect, it } from "vitest";
import { type Result, writeResult } from "./page.ts";
import type { Workload } from "./workload.ts";

const workload: Workload = {
  name: "ferry",
  summary: "one boat against a bridge",
  rounds: 2,
  contenders: ["boat", "bridge", "tunnel"].map((name) => ({ name, start: () => Promise.resolve(null) })),
  scenarios: [
    {
      name: "by day",
      metrics: [
        { name: "cpu", unit: "µs/crossing", better: "lower" },
        { name: "crossings", unit: "1/s", better: "higher" },
      ],
    },
    { name: "by night", metrics: [{ name: "cpu", unit: "µs/crossing", better: "lower" }] },
  ],
  headlines: [
    {
      text: "of the bridge's crossings",
      figure: (median) =>
        ratio(median("boat", "by day", "crossings"), median("bridge", "by day", "crossings")),
    },
    { text: "not measured", figure: (median) => median("boat", "by night", "crossings")?.toString() ?? null },
  ],
  goals: [
    { text: "at least half of the bridge", isMet: () => true },
    { text: "at least the bridge", isMet: () => false },
  ],
};

function ratio(own: number | null, other: number | null): string | null {
  return own === null || other === null ? null : `${(own / other).toFixed(1)} ×`;
}

function measured(contender: string, scenario: string, round: number, values: Record<string, number>) {
  return { contender, scenario, round, values };
}

const result: Result = {
  name: "ferry",
  at: "2026-11-17T20:00:00.000Z",
  commit: "abc1234",
  isQuick: false,
  machine: { cores: 2, arch: "arm64", node: "v24.21.0" },
  measurements: [
    measured("boat", "by day", 0, { cpu: 12, crossings: 1000, others: 0.01 }),
    measured("boat", "by day", 1, { cpu: 14, crossings: 3000, others: 0.03 }),
    measured("bridge", "by day", 0, { cpu: 0.5, crossings: 4000 }),
    measured("bridge", "by night", 0, { cpu: 1234.4 }),
  ],
};

const PAGE = `# Benchmarks

<!-- summary -->

| workload | figure | |
| --- | --- | --- |
| \`ferry\` | 9.9 × | old |
| \`train\` | 2.0 × | of the ferry |

<!-- end -->

## Ferry

Text stays.

<!-- results of ferry -->

old

<!-- end -->

More text.
`;

it("the results of a workload replace its table and its rows of the summary, and nothing else", () => {
  expect(writeResult(PAGE, workload, result)).toBe(`# Benchmarks

<!-- summary -->

| workload | figure | |
| --- | --- | --- |
| \`ferry\` | 0.5 × | of the bridge's crossings |
| \`train\` | 2.0 × | of the ferry |

<!-- end -->

## Ferry

Text stays.

<!-- results of ferry -->

17 November 2026, commit abc1234, 2 cores (arm64, Node 24.21), medians of 2 rounds; other processes used 2 % of the server's core (median; at most 3 %).

| scenario | figure | boat | bridge |
| --- | --- | --- | --- |
| by day | cpu, µs/crossing | 13.0 | 0.500 |
|  | crossings, 1/s | 2,000 | 4,000 |
| by night | cpu, µs/crossing | – | 1,234 |

1 of 2 goals is met. Missed: at least the bridge.

<!-- end -->

More text.
`);
});

it("a page without a place for the workload is refused, and so are quick results", () => {
  expect(() => writeResult("# Benchmarks\n", workload, result)).toThrow('"<!-- results of ferry -->"');
  expect(() => writeResult(PAGE, workload, { ...result, isQuick: true })).toThrow("--quick");
});
