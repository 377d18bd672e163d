/**
 * The order of test files: those that take long first, so that none of them runs alone at the end while the other workers have nothing to do.
 * A fresh checkout knows no durations, and the size of a file says little about its duration.
 */
import { relative } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** More than 15 s each, by suite, the longest first. A file that is missing here runs later, which costs only time. */
const LONGEST = [
  "test/packages/published-packages.long.test.ts",
  "test/faults/agents-power-cut.long.test.ts",
  "test/browser/dashboard-quality.long.test.ts",
  "test/worker/nodes-lost.long.test.ts",
  "test/chaos/chaos.long.test.ts",
  "test/cluster/processes.long.test.ts",
  "test/hostile/fuzzing.long.test.ts",
  "test/coding-clients/gemini-cli.long.test.ts",
  "test/cluster/work-goes-on.long.test.ts",
  "test/worker/loader-hostile.long.test.ts",
  "test/cluster/agents-take-over.long.test.ts",
  "test/faults/agents-kill.long.test.ts",
  "test/hostile/management-inputs.long.test.ts",
  "test/coding-clients/claude-code.long.test.ts",
  "test/coding-clients/copilot-cli.long.test.ts",
  "test/coding-clients/codex.long.test.ts",
  "test/conformance/dev-reload.long.test.ts",
  "packages/signalbox/src/gateway/guardrails/guarded-streams.long.test.ts",
  "test/faults/mixed-kill.long.test.ts",
  "test/cluster/database-gone.long.test.ts",
  "test/worker/catalogue.long.test.ts",
  "test/docs/shell-blocks.long.test.ts",
  "test/deploy/docker.long.test.ts",
  "test/faults/backup.long.test.ts",
  "test/cluster/backup.long.test.ts",
  "test/docs/site.long.test.ts",
  "test/browser/dashboard-problems.long.test.ts",
  "test/examples/nextjs.long.test.ts",
  "test/examples/started-examples.long.test.ts",
  "test/faults/full-disk.long.test.ts",
  "test/faults/agents-plain-store.long.test.ts",
  "test/browser/dashboard-cluster.long.test.ts",
  "test/faults/postgres-hangs.long.test.ts",
  "test/faults/migrations-killed.long.test.ts",
  "test/chaos/rolling-restarts.long.test.ts",
  "test/examples/cluster.long.test.ts",
  "test/faults/webhooks-kill.long.test.ts",
  "test/cluster/paused-node.long.test.ts",
  "test/browser/original-use-agent-chat.long.test.ts",
  "test/cluster/original-clients.long.test.ts",
  "test/cluster/revocation.long.test.ts",
  "test/browser/dashboard-restart.long.test.ts",
  "test/cluster/joining.long.test.ts",
  "test/worker/start.long.test.ts",
  "test/cluster/agents-import.long.test.ts",
  "test/faults/postgres-failover.long.test.ts",
  "test/cluster/stopping.long.test.ts",
  "test/worker/mcp.long.test.ts",
  "test/worker/dev.long.test.ts",
  "test/faults/locked-database.long.test.ts",
  "test/cluster/sockets-move.long.test.ts",
  "test/worker/mcp-split.long.test.ts",
  "test/cluster/call-log.long.test.ts",
  "test/faults/call-log-postgres.long.test.ts",
  "test/cluster/upgrading.long.test.ts",
  "test/worker/objects.long.test.ts",
  "test/faults/master-key-rotation.long.test.ts",
  "test/cluster/clocks.long.test.ts",
  "test/faults/call-log.long.test.ts",
  "test/faults/objects-full-disk.long.test.ts",
  "test/faults/log-push-kill.long.test.ts",
  "test/hostile/cluster-access.long.test.ts",
  "test/docs/other-blocks.long.test.ts",
  "test/cluster/watching.long.test.ts",
  "packages/signalbox/src/database/postgres/node-session.test.ts",
  "test/conformance/running-it.test.ts",
  "test/cluster/processes.test.ts",
  "test/worker/loader.test.ts",
  "test/faults/objects-kill.test.ts",
  "test/cluster/alerts.test.ts",
  "test/cluster/settings.test.ts",
  "test/browser/dashboard-agents.test.ts",
  "packages/signalbox/src/engines/call-log/postgres/postgres-contract.test.ts",
  "packages/signalbox/src/engines/call-log/postgres/day-reads.test.ts",
  "packages/signalbox/src/engines/http-server/plain-connection.test.ts",
  "packages/signalbox/src/engines/call-log/sqlite-contract.test.ts",
  "packages/signalbox/src/tags/store/tag-store-postgres.test.ts",
  "packages/signalbox/src/agents/placement/two-nodes.test.ts",
  "packages/signalbox/src/tags/store/tag-store.test.ts",
  "packages/signalbox/src/database/postgres/postgres-limits.test.ts",
  "test/browser/dashboard-work.test.ts",
  "test/examples/example-pages.test.ts",
  "test/hostile/cluster-port.test.ts",
  "test/conformance/agents-original-clients.test.ts",
  "test/conformance/agents-management.test.ts",
  "test/worker/agents.test.ts",
  "test/cluster/any-node.test.ts",
  "test/browser/dashboard-session.test.ts",
  "test/conformance/command-line.test.ts",
  "packages/signalbox/src/engines/call-log/postgres/postgres-call-log.test.ts",
  "test/browser/dashboard-gateway.test.ts",
  "test/browser/dashboard-keys.test.ts",
  "test/cluster/agents-move.test.ts",
  "test/browser/dashboard-watch.test.ts",
  "test/conformance/agents-hooks.test.ts",
  "test/conformance/exposure.test.ts",
];

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { root } = this.ctx.config;
    const rankOf = ({ moduleId, project }: TestSpecification) => {
      const place = LONGEST.indexOf(relative(root, moduleId));
      // Files that share a worker follow each other.
      return [Number(!project.config.isolate), place === -1 ? LONGEST.length : place] as const;
    };
    const ranks = new Map(files.map((file) => [file, rankOf(file)]));
    const sorted = await super.sort(files);
    return sorted.sort((a, b) => {
      const [isSharedA = 0, placeA = 0] = ranks.get(a) ?? [];
      const [isSharedB = 0, placeB = 0] = ranks.get(b) ?? [];
      return isSharedA - isSharedB || placeA - placeB;
    });
  }
}
