import { expect, it } from "vitest";
import { mergeMetrics, supervisorMetrics } from "./merge-metrics.ts";

const textOf = (process: number, help = "Things.") =>
  `# HELP things_total ${help}\n# TYPE things_total counter\nthings_total{process="${process}"} ${process}\n\n` +
  `# HELP lag Lag.\n# TYPE lag gauge\nlag{process="${process}"} 0.${process}\n`;

it("keeps the series of a metric together, and describes it once, even if another version has other words", () => {
  expect(mergeMetrics([textOf(1), textOf(2, "Other words.")])).toBe(
    `# HELP things_total Things.
# TYPE things_total counter
things_total{process="1"} 1
things_total{process="2"} 2

# HELP lag Lag.
# TYPE lag gauge
lag{process="1"} 0.1
lag{process="2"} 0.2
`,
  );
});

it("names a process that did not answer", () => {
  const reports = [
    { process: 1, state: "serving", restarts: 0, answer: null },
    { process: 2, state: "waiting", restarts: 3, answer: null },
  ] as const;
  const text = mergeMetrics([supervisorMetrics(reports, new Set([1])), textOf(1)]);
  expect(text).toContain(
    'signalbox_process_up{process="1"} 1\nsignalbox_process_up{process="2"} 0\n\n# HELP signalbox_process_restarts_total',
  );
  expect(text).toContain('signalbox_process_restarts_total{process="2"} 3\n\n# HELP things_total');
});
