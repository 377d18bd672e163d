/** The cells of docs/benchmarks.md, by workload, scenario, figure and contender. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "./code-blocks.ts";

/** By `workload | scenario | figure | contender`. */
const cells = readCells(readFileSync(join(ROOT, "docs/benchmarks.md"), "utf8"));

/** The text of a cell. `figure` is its name, without the unit behind the comma. */
export function cell(workload: string, scenario: string, figure: string, contender = "signalbox"): string {
  const found = cells.get([workload, scenario, figure, contender].join(" | "));
  if (found === undefined) throw new Error(`no cell ${workload}, ${scenario}, ${figure}, ${contender}`);
  return found;
}

/** The largest number that a figure has in any scenario. */
export function largest(workload: string, figure: string, contender = "signalbox"): number {
  const [before, after] = [`${workload} | `, ` | ${figure} | ${contender}`];
  const found = [...cells].filter(([place]) => place.startsWith(before) && place.endsWith(after));
  if (found.length === 0) throw new Error(`no cell ${workload}, ${figure}, ${contender}`);
  return Math.max(...found.map(([, text]) => numberOf(text)));
}

export function numberOf(text: string): number {
  return Number(text.replaceAll(",", ""));
}

function readCells(page: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const [, workload = "", results = ""] of page.matchAll(
    /^<!-- results of ([\w-]+) -->$([^]*?)^<!-- end -->$/gm,
  )) {
    let contenders: readonly string[] = [];
    let scenario = "";
    for (const line of results.split("\n").filter((row) => row.startsWith("|"))) {
      const [first = "", figure = "", ...values] = line
        .split("|")
        .slice(1, -1)
        .map((text) => text.trim());
      if (first === "scenario") contenders = values;
      else if (first !== "") scenario = first;
      const [name = ""] = figure.split(",");
      for (const [i, value] of values.entries())
        found.set([workload, scenario, name, contenders[i]].join(" | "), value);
    }
  }
  return found;
}
