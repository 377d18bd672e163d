/**
 * Writes results into docs/benchmarks.md: one table for each workload and the rows of the summary, between comments. The text around them is written
 * by hand and has no measured figure, so that it stays true.
 */
import { describeOthers, isBusy, medianFrom } from "./report.ts";
import { formatNumber } from "./statistics.ts";
import type { Measurement, Median, Workload } from "./workload.ts";

/** What a run leaves in `bench/results/<name>.json`. */
export interface Result {
  readonly name: string;
  readonly at: string;
  readonly commit: string;
  readonly isQuick: boolean;
  readonly machine: { readonly cores: number; readonly arch: string; readonly node: string };
  readonly measurements: readonly Measurement[];
}

const END = "<!-- end -->";
const SUMMARY = "<!-- summary -->";

export function writeResult(page: string, workload: Workload, result: Result): string {
  const { name } = workload;
  if (result.isQuick) throw new Error(`${name}: the results are of --quick, which is for comparisons`);
  const medianOf = medianFrom(result.measurements);
  const parts = [describeRun(workload, result), table(workload, result, medianOf)];
  const goals = describeGoals(workload, result, medianOf);
  const block = goals === null ? parts : [...parts, goals];
  const withTable = replaceBetween(page, `<!-- results of ${name} -->`, () => block.join("\n\n"));
  return replaceBetween(withTable, SUMMARY, (rows) => withHeadlines(rows, workload, medianOf));
}

function replaceBetween(page: string, start: string, replace: (inside: string) => string): string {
  const from = page.indexOf(start) + start.length;
  const to = page.indexOf(END, from);
  if (!page.includes(start) || to === -1) throw new Error(`the page has no "${start}" … "${END}"`);
  return `${page.slice(0, from)}\n\n${replace(page.slice(from, to).trim())}\n\n${page.slice(to)}`;
}

function describeRun({ rounds }: Workload, { at, commit, machine, measurements }: Result): string {
  const date = new Intl.DateTimeFormat("en-GB", { dateStyle: "long", timeZone: "UTC" }).format(new Date(at));
  const node = machine.node.replace(/^v(\d+\.\d+).*/, "$1");
  const run = `${date}, commit ${commit}, ${machine.cores} cores (${machine.arch}, Node ${node}), medians of ${rounds} rounds`;
  return `${[run, ...describeOthers(measurements)].join("; ")}.`;
}

function table({ contenders, scenarios }: Workload, { measurements }: Result, medianOf: Median): string {
  const measured = contenders
    .map(({ name }) => name)
    .filter((name) => measurements.some(({ contender }) => contender === name));
  const rows = scenarios.flatMap(({ name: scenario, metrics }) => {
    const shown = metrics.filter((metric) =>
      measured.some((contender) => medianOf(contender, scenario, metric.name) !== null),
    );
    return shown.map(({ name, unit }, i) => {
      const cells = measured.map((contender) => {
        const value = medianOf(contender, scenario, name);
        return value === null ? "–" : formatNumber(value);
      });
      return [i === 0 ? scenario : "", `${name}, ${unit}`, ...cells];
    });
  });
  const head = ["scenario", "figure", ...measured];
  return [head, head.map(() => "---"), ...rows].map(toRow).join("\n");
}

function toRow(cells: readonly string[]): string {
  return `| ${cells.join(" | ")} |`;
}

/** Null without goals. */
function describeGoals({ goals = [] }: Workload, { measurements }: Result, medianOf: Median): string | null {
  if (goals.length === 0) return null;
  if (isBusy(measurements)) return "Goals are not judged: the machine was busy.";
  const missed = goals.filter((goal) => !goal.isMet(medianOf)).map(({ text }) => text);
  const met = goals.length - missed.length;
  const count = `${met} of ${goals.length} goals ${met === 1 ? "is" : "are"} met.`;
  return missed.length === 0 ? count : `${count} Missed: ${missed.join("; ")}.`;
}

/** The rows of the summary, with those of the workload replaced where they stand. */
function withHeadlines(rows: string, { name, headlines = [] }: Workload, medianOf: Median): string {
  const own = headlines.flatMap(({ text, figure }) => {
    const value = figure(medianOf);
    return value === null ? [] : [toRow([`\`${name}\``, value, text])];
  });
  const lines = rows.split("\n");
  const isOwn = (line: string) => line.startsWith(`| \`${name}\``);
  const at = lines.findIndex(isOwn);
  const others = lines.filter((line) => !isOwn(line));
  return others.toSpliced(at === -1 ? others.length : at, 0, ...own).join("\n");
}
