/**
 * Sentences and table rows that repeat a figure of docs/benchmarks.md, each with the cells from which the figure comes. `#` stands for the figure;
 * white space counts as one space.
 */
import { cell, largest, numberOf } from "./benchmark-cells.ts";

export interface FigureClaim {
  readonly text: string;
  /** For each `#`: the text of a cell, or a number that is computed from cells. */
  readonly from: readonly (string | number)[];
}

const of = (...place: Parameters<typeof cell>) => numberOf(cell(...place));

const JSON_32 = ["gateway", "JSON, 32 connections"] as const;
const WRITES = ["agents", "one instance, 64 callers, method with one write", "calls"] as const;
const SPREAD_WRITES = ["agents", "1,000 warm instances, 64 callers, method with one write", "calls"] as const;
const MEMORY = cell("gateway", "resident memory", "second");
const RULES = ["guardrails", "JSON of 4 KB, 32 connections", "cpu"] as const;
const MASKED = ["guardrails", "the same with a text that is masked", "cpu"] as const;

const ADDED =
  of("gateway", "JSON, 1 connection", "p50") - of("gateway", "JSON, 1 connection", "p50", "direct");
const TIMES_PORTKEY = of(...JSON_32, "calls") / of(...JSON_32, "calls", "portkey");
const TIMES_WORKERD = of(...WRITES, "worker mode") / of(...WRITES, "workerd");
const SPREAD_TIMES_WORKERD = of(...SPREAD_WRITES, "worker mode") / of(...SPREAD_WRITES, "workerd");

const claim = (text: string, ...from: FigureClaim["from"]): FigureClaim => ({ text, from });
const seconds = (...place: Parameters<typeof cell>) => of(...place) / 1000;

/** By page. */
export const CLAIMS: Readonly<Record<string, readonly FigureClaim[]>> = {
  "README.md": [
    claim("| # ms | # × | # × |", ADDED, TIMES_PORTKEY, TIMES_WORKERD),
    claim("same program, for one agent instance (# × for 1,000)", SPREAD_TIMES_WORKERD),
  ],
  "docs/index.md": [
    claim(
      "| # ms | # × | # × | # ms |",
      ADDED,
      TIMES_PORTKEY,
      TIMES_WORKERD,
      cell("webhooks", "webhook to WebSocket, one at a time", "p50"),
    ),
  ],
  "docs/comparison.md": [
    claim("| added latency at the median, one connection | # ms | – |", ADDED),
    claim(
      "| CPU time of a JSON call, with authentication, log row and bodies | # µs | # µs |",
      cell(...JSON_32, "cpu"),
      cell(...JSON_32, "cpu", "portkey"),
    ),
    claim(
      "| calls per second on one core | # | # |",
      cell(...JSON_32, "calls"),
      cell(...JSON_32, "calls", "portkey"),
    ),
    claim("| memory after 200,000 calls | # MB | – |", MEMORY),
    claim(
      "one instance: # × those of bare workerd on the same machine with the same program, # × with 1,000 instances",
      TIMES_WORKERD,
      SPREAD_TIMES_WORKERD,
    ),
  ],
  "docs/guides/from-one-node-to-many.md": [
    claim(
      "| gateway call, JSON | # µs (# µs with SQLite) |",
      cell("limits", "without a limit", "cpu", "PostgreSQL"),
      cell("limits", "without a limit", "cpu", "SQLite"),
    ),
    claim(
      "| the same, under four limits | # µs; # µs above four fifths of a limit |",
      cell("limits", "under four limits, far below them", "cpu", "PostgreSQL"),
      cell("limits", "above four fifths of a limit", "cpu", "PostgreSQL"),
    ),
    claim(
      "| stream of 50 events, SQLite | # µs (one write) to # µs (one write for each) |",
      cell("gateway", "streams of 50 events in one write, 32 connections", "cpu"),
      cell("gateway", "64 streams of 50 events, 10 ms apart", "cpu"),
    ),
    claim(
      "| event of a warm instance, without HTTP | # µs (# µs with the embedded journal) | # µs, and # KB of WAL |",
      cell("cluster", "1,000 warm entities, 64 at a time", "cpu", "on PostgreSQL"),
      cell("cluster", "1,000 warm entities, 64 at a time", "cpu", "embedded journal"),
      cell("cluster", "1,000 warm entities, 64 at a time", "postgres", "on PostgreSQL"),
      cell("cluster", "1,000 warm entities, 64 at a time", "wal", "on PostgreSQL"),
    ),
    claim(
      "| webhook, received, verified and run, embedded journal | # µs |",
      cell("webhooks", "1,000 warm entities, 64 connections", "cpu"),
    ),
    claim(
      "| first event of an entity | waits # ms for PostgreSQL (round trip # ms) |",
      cell("first-touch", "first touches, one at a time", "p50", "signalbox on PostgreSQL"),
      cell("first-touch", "first touches, one at a time", "trip", "signalbox on PostgreSQL"),
    ),
    claim(
      "| message between nodes | # µs for both ends together, # µs with",
      cell("links", "a hop over TCP", "cpu"),
      cell("links", "a hop over TLS", "cpu"),
    ),
    claim("needs after many calls (# MB)", MEMORY),
  ],
  "docs/guides/sizing.md": [
    claim("also with all data | # MB, with the data of", cell("growth", "start with all data", "memory")),
    claim("| after many calls | # MB ([benchmarks]", MEMORY),
    claim("other requests waited for # ms at most", largest("growth", "healthz")),
    claim(
      "an order by cost (# s), the ranges of all calls of a gateway (# s), a search in the metadata of a gateway (# s)",
      seconds("growth", "calls: most expensive of a gateway", "slowest"),
      seconds("growth", "calls: ranges of a gateway", "slowest"),
      seconds("growth", "calls: metadata search of a gateway", "slowest"),
    ),
  ],
  "docs/guides/guardrails.md": [
    claim(
      "1 KB of a prompt takes about # µs of CPU time",
      (of("guardrails", "JSON of 200 KB, 4 connections", "cpu", "ten rules") -
        of("guardrails", "JSON of 200 KB, 4 connections", "cpu", "no rules")) /
        196,
    ),
    claim(
      "costs some # µs more than without rules",
      tens(of(...RULES, "ten rules") - of(...RULES, "no rules")),
    ),
    claim("a text that is masked another # µs", tens(of(...MASKED, "ten rules") - of(...RULES, "ten rules"))),
  ],
};

function tens(value: number): number {
  return Math.round(value / 10) * 10;
}
