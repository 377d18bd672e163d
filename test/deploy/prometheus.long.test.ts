/** The alert rules and the board in `deploy/`: Prometheus accepts them, and they name only metrics that exist. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, expect, it } from "vitest";
import {
  type DescribedMetric,
  describeMetrics,
  metricsPage,
  METRICS_PAGE_PATH,
} from "../../scripts/support/metrics-page.ts";
import { findPromtool, PROMTOOL_IS_MISSING } from "../support/promtool-path.ts";

const DEPLOY = join(import.meta.dirname, "../../deploy");
const RULES = join(DEPLOY, "prometheus/signalbox-alerts.yml");
const BOARD = join(DEPLOY, "grafana/signalbox.json");

let metrics: DescribedMetric[];
beforeAll(async () => {
  metrics = await describeMetrics();
});

function promtool(...args: string[]): string {
  const path = findPromtool();
  if (path === null) throw new Error(PROMTOOL_IS_MISSING);
  return execFileSync(path, args, {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
    cwd: join(DEPLOY, "prometheus"),
  });
}

interface Panel {
  readonly title: string;
  readonly targets?: readonly { readonly expr: string }[];
}
const panels = () => (JSON.parse(readFileSync(BOARD, "utf8")) as { panels: Panel[] }).panels;
const expressions = () => panels().flatMap(({ targets }) => (targets ?? []).map(({ expr }) => expr));

it("promtool accepts the alert rules, and they fire when they should", () => {
  expect(promtool("check", "rules", RULES)).toMatch(/SUCCESS: \d+ rules found/);
  expect(promtool("test", "rules", "signalbox-alerts.test.yml")).toMatch(/SUCCESS/);
});

it("promtool accepts every expression of the board", () => {
  const folder = mkdtempSync(join(tmpdir(), "signalbox-board-"));
  const file = join(folder, "board.yml");
  const rules = expressions().map((expr, i) => {
    const plain = expr
      .replaceAll("$__rate_interval", "5m")
      .replaceAll("$__range", "6h")
      .replaceAll("$instance", ".*");
    return `      - record: board:${i}\n        expr: ${JSON.stringify(plain)}\n`;
  });
  writeFileSync(file, `groups:\n  - name: board\n    rules:\n${rules.join("")}`);
  expect(promtool("check", "rules", file)).toContain(`${rules.length} rules found`);
  rmSync(folder, { recursive: true });
});

it.each([
  ["the alert rules", () => readFileSync(RULES, "utf8")],
  ["the board", () => expressions().join("\n")],
])("%s name metrics that the service has, with labels that they have", (_, read) => {
  const known = new Map(metrics.map((metric) => [metric.name, metric]));
  const uses = [
    ...read().matchAll(/(signalbox_\w+?)(?:_bucket|_sum|_count)?(?:\{([^}]*)\})?(?=[\s)[*]|$)/gm),
  ];
  expect(uses.length).toBeGreaterThan(10);
  for (const [, name = "", selector = ""] of uses) {
    const metric = known.get(name);
    expect([name, metric !== undefined]).toEqual([name, true]);
    const labels = [...selector.matchAll(/(\w+)\s*(?:=|!)/g)].map(([, label]) => label ?? "");
    const own = labels.filter((label) => label !== "instance" && label !== "job");
    expect([name, own.filter((label) => metric?.labels.includes(label) !== true)]).toEqual([name, []]);
  }
});

it("the page of metrics is up to date with the code (otherwise: npm run docs)", async () => {
  expect(readFileSync(METRICS_PAGE_PATH, "utf8")).toBe(await metricsPage());
});
