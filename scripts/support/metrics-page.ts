/** `docs/reference/metrics.md`: what `/metrics` of a started service describes, with the labels that the code declares. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfig } from "../../packages/signalbox/src/config/index.ts";
import { startService } from "../../packages/signalbox/src/service.ts";
import { labelNames } from "../../packages/signalbox/src/telemetry/instruments.ts";
import { createLogger } from "../../packages/signalbox/src/telemetry/logger.ts";

export const METRICS_PAGE_PATH = join(import.meta.dirname, "../../docs/reference/metrics.md");

const INTRODUCTION = `# Metrics

This page is generated from a started service by \`npm run docs\`.

\`GET /metrics\` of the administration address returns Prometheus text. From another machine it needs a token, unless the service runs with
\`--metrics-public\`. Besides the metrics below it has those of the process and of Node.js (\`process_*\`, \`nodejs_*\`) that prom-client collects.
Labels have few values: providers, areas, kinds and outcomes, never accounts, gateways, tokens or models; those are in the
[call log](gateway-logs.md) and in [OpenTelemetry](../guides/observability.md).

Series of a node of a cluster have the label \`node\`. With [several processes](running.md#several-processes) the page has the series of all of them, with the label
\`process\`, and two more metrics: \`signalbox_process_up\` (0 for a process that does not run or does not answer) and \`signalbox_process_restarts_total\`.

\`deploy/prometheus/signalbox-alerts.yml\` contains alert rules, \`deploy/grafana/signalbox.json\` a board.

| metric | type | labels | meaning |
| --- | --- | --- | --- |
`;

export interface DescribedMetric {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly labels: readonly string[];
}

/** The metrics of a service that sends telemetry: a part that is loaded on demand has metrics as well. */
export async function describeMetrics(): Promise<DescribedMetric[]> {
  const dataDir = mkdtempSync(join(tmpdir(), "signalbox-metrics-"));
  const environment = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9" };
  const service = await startService({
    config: await loadConfig({ port: "0", dataDir }, environment, dataDir),
    logger: createLogger({ level: "silent", isPretty: false }),
    onFatal: (error) => {
      throw error;
    },
  });
  try {
    const text = await (await fetch(`${service.url}/metrics`)).text();
    const types = new Map([...text.matchAll(/^# TYPE (\S+) (\w+)$/gm)].map(([, name, type]) => [name, type]));
    return [...text.matchAll(/^# HELP (signalbox_\S+) (.*)$/gm)]
      .map(([, name = "", help = ""]) => ({
        name,
        help,
        type: types.get(name) ?? "",
        labels: labelNames.get(name) ?? [],
      }))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  } finally {
    await service.stop();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

export async function metricsPage(): Promise<string> {
  const rows = (await describeMetrics()).map(
    ({ name, type, labels, help }) =>
      `| \`${name}\` | ${type} | ${labels.map((label) => `\`${label}\``).join(", ")} | ${help.replaceAll("|", "\\|")} |`,
  );
  return `${INTRODUCTION}${rows.join("\n")}\n`;
}
