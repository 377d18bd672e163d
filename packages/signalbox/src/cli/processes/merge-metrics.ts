/** The metrics of several processes as one text for Prometheus, which wants the series of a metric together, and its description once. */
import type { ProcessReport } from "./messages.ts";

interface Family {
  readonly head: string[];
  readonly series: string[];
}

/** The series of each process already have a label that names it. */
export function mergeMetrics(texts: readonly string[]): string {
  const families = new Map<string, Family>();
  for (const text of texts) {
    let family: Family = { head: [], series: [] };
    for (const line of text.split("\n")) {
      if (line.startsWith("# HELP ")) family = familyOf(families, line);
      if (line.startsWith("#")) {
        if (!family.head.includes(line)) family.head.push(line);
      } else if (line !== "") family.series.push(line);
    }
  }
  const parts = [...families.values()].map(({ head, series }) => [...head, ...series].join("\n"));
  return `${parts.join("\n\n")}\n`;
}

function familyOf(families: Map<string, Family>, help: string): Family {
  const name = help.split(" ", 3)[2] ?? "";
  let family = families.get(name);
  if (family === undefined) {
    family = { head: [], series: [] };
    families.set(name, family);
  }
  // Two versions may describe a metric with other words while processes are replaced: the first ones count.
  return family.head.length === 0 ? family : { head: [...family.head, help], series: family.series };
}

/** What only the supervisor knows. `answered`: the processes whose metrics follow. */
export function supervisorMetrics(reports: readonly ProcessReport[], answered: ReadonlySet<number>): string {
  const lines = (value: (report: ProcessReport) => number, name: string) =>
    reports.map((report) => `${name}{process="${report.process}"} ${value(report)}`);
  return [
    "# HELP signalbox_process_up 1 if the process has reported its metrics, 0 if it does not run or did not answer in time.",
    "# TYPE signalbox_process_up gauge",
    ...lines(({ process }) => (answered.has(process) ? 1 : 0), "signalbox_process_up"),
    "# HELP signalbox_process_restarts_total How often the process has ended by itself and was started again.",
    "# TYPE signalbox_process_restarts_total counter",
    ...lines(({ restarts }) => restarts, "signalbox_process_restarts_total"),
  ].join("\n");
}
