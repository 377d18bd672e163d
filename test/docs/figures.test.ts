/**
 * Measured figures have one home, docs/benchmarks.md, which `npm run bench -- all --page` writes. Pages that repeat them must follow it, and so must the
 * page that names the versions of other programs.
 */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { CODING_CLIENTS } from "../coding-clients/clients.ts";
import { ROOT } from "./support/code-blocks.ts";

const read = (page: string) => readFileSync(join(ROOT, page), "utf8");
/** A number with a unit of time, memory or comparison. */
const FIGURE = /(?<![\d.,])\d[\d,]*(?:\.\d+)?(?= ?(?:×|µs|ms|[KM]B)(?![\w/]))/g;
const NUMBER = /(?<![\w.,])\d[\d,]*(?:\.\d+)?/g;

const WORKLOADS = globSync("*.ts", { cwd: join(ROOT, "bench/workloads") })
  .map((file) => file.replace(/\.ts$/, ""))
  .toSorted();

const isRow = (line: string) => line.startsWith("|");
const cellsOf = (row: string) => row.split("|").slice(1, -1);

const published = new Set(
  read("docs/benchmarks.md")
    .split("\n")
    .filter(isRow)
    .flatMap((row) => row.match(NUMBER) ?? []),
);

it.each(["README.md", "docs/index.md"])("every figure of %s is one of the benchmarks", (page) => {
  const figures = withoutCode(read(page)).match(FIGURE) ?? [];
  expect(figures.length).toBeGreaterThan(2);
  expect(figures.filter((figure) => !published.has(figure))).toEqual([]);
});

it("every figure of the comparison that is ours, or measured by us, is one of the benchmarks", () => {
  const lines = withoutCode(read("docs/comparison.md")).split("\n");
  const head = lines.findIndex((line) => isRow(line) && line.includes("published by others"));
  const end = lines.findIndex((line, i) => i > head && !isRow(line));
  // The first column names the figure, and the last one is what others publish.
  const measured = lines
    .slice(head + 2, end)
    .flatMap((row) => cellsOf(row).slice(1, -1).join(" ").match(NUMBER) ?? []);
  const told = lines.filter((line) => !isRow(line)).flatMap((line) => line.match(FIGURE) ?? []);
  expect(measured.length).toBeGreaterThan(4);
  expect([...measured, ...told].filter((figure) => !published.has(figure))).toEqual([]);
});

it("every figure for the size of a cluster is one of the benchmarks", () => {
  const [, section = ""] = read("docs/guides/from-one-node-to-many.md").split("\n## Sizing\n");
  const figures = section.split("\n## ")[0]?.match(FIGURE) ?? [];
  expect(figures.length).toBeGreaterThan(10);
  expect(figures.filter((figure) => !published.has(figure))).toEqual([]);
});

it("the page of the benchmarks has a place for the results of every workload", () => {
  const page = read("docs/benchmarks.md");
  const places = [...page.matchAll(/^<!-- results of ([\w-]+) -->$/gm)].map(([, name = ""]) => name);
  expect(places.toSorted()).toEqual(WORKLOADS);
});

it("the guide of coding clients names the versions that are tested", () => {
  const rows = read("docs/guides/coding-agents.md").split("\n").filter(isRow).map(cellsOf);
  for (const { packageName, version } of CODING_CLIENTS) {
    const [, , named] = rows.find((cells) => cells[1]?.includes(`\`${packageName}\``)) ?? [];
    expect([packageName, named?.trim()]).toEqual([packageName, version]);
  }
});

function withoutCode(markdown: string): string {
  return markdown.replaceAll(/^```[^]*?^```$/gm, "");
}
