/**
 * Measured figures have one home, docs/benchmarks.md, which `npm run bench -- all --page` writes. Pages that repeat them must follow it, and so must the
 * page that names the versions of other programs.
 */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { CODING_CLIENTS } from "../coding-clients/clients.ts";
import { ROOT } from "./support/code-blocks.ts";
import { CLAIMS, type FigureClaim } from "./support/figure-claims.ts";

const read = (page: string) => readFileSync(join(ROOT, page), "utf8");
/** A number with a unit of time, memory or comparison. */
const FIGURE = /(?<![\d.,])\d[\d,]*(?:\.\d+)?(?= ?(?:×|µs|ms|[KM]B)(?![\w/]))/;

const WORKLOADS = globSync("*.ts", { cwd: join(ROOT, "bench/workloads") })
  .map((file) => file.replace(/\.ts$/, ""))
  .toSorted();

const isRow = (line: string) => line.startsWith("|");
const cellsOf = (row: string) => row.split("|").slice(1, -1);

/** Pages, or sections of them, on which every figure is one of the benchmarks. */
const COVERED: Readonly<Record<string, string | null>> = {
  "README.md": null,
  "docs/index.md": null,
  "docs/comparison.md": null,
  "docs/guides/from-one-node-to-many.md": "Sizing",
};

describe.each(Object.entries(CLAIMS))("%s", (page, claims) => {
  const text = onOneLine(withoutCode(read(page)));
  it.each(claims)("repeats the cell of the benchmarks: $text", (claim) => {
    const found = [...text.matchAll(patternOf(claim))];
    expect(found.length, "the page has the text once").toBe(1);
    const figures = found[0]?.slice(1) ?? [];
    expect(figures).toEqual(claim.from.map((value, i) => asWritten(value, figures[i] ?? "")));
  });
});

it.each(Object.entries(COVERED))("%s has no other figure of ours", (page, heading) => {
  const whole = withoutCode(read(page));
  const part = heading === null ? whole : (whole.split(`\n## ${heading}\n`)[1]?.split("\n## ")[0] ?? "");
  const claims = CLAIMS[page] ?? [];
  const rest = claims.reduce((text, claim) => text.replace(patternOf(claim), ""), onOneLine(part));
  expect(rest).not.toBe(onOneLine(part));
  // What others publish has the number of its source.
  expect(rest.split(" | ").filter((piece) => FIGURE.test(piece) && !/\[\d\]/.test(piece))).toEqual([]);
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

/** The text of a claim, with a group for each figure. */
function patternOf({ text }: FigureClaim): RegExp {
  const parts = text.split("#").map((part) => part.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
  return new RegExp(parts.join("(\\d[\\d,]*(?:\\.\\d+)?)"), "g");
}

/** A computed figure has the decimals of the page. */
function asWritten(value: string | number, written: string): string {
  if (typeof value === "string") return value;
  return value.toFixed(written.split(".")[1]?.length ?? 0);
}

/** Cells of tables are filled up with blanks and dashes. */
function onOneLine(markdown: string): string {
  return markdown.replaceAll(/\s+/g, " ");
}

function withoutCode(markdown: string): string {
  return markdown.replaceAll(/^```[^]*?^```$/gm, "");
}
