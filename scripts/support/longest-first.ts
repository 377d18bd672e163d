/**
 * The order of test files: those that take long first, so that none of them runs alone at the end while the other workers have nothing to do.
 * A fresh checkout knows no durations, and the size of a file says little about its duration.
 */
import { relative } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** More than 20 s each, the longest first. A file that is missing here runs later, which costs only time. */
const LONGEST = [
  "test/packages/published-packages.long.test.ts",
  "test/faults/agents-kill.long.test.ts",
  "test/browser/dashboard-quality.long.test.ts",
  "test/faults/agents-power-cut.long.test.ts",
  "test/faults/mixed-kill.long.test.ts",
  "test/conformance/running-it.test.ts",
  "test/cluster/database-gone.long.test.ts",
  "test/chaos/chaos.long.test.ts",
  "test/worker/catalogue.long.test.ts",
  "test/docs/shell-blocks.long.test.ts",
  "test/deploy/docker.long.test.ts",
  "test/faults/backup.test.ts",
  "test/cluster/backup.test.ts",
  "test/docs/site.long.test.ts",
  "test/browser/dashboard-work.test.ts",
  "test/browser/dashboard-problems.test.ts",
  "test/examples/started-examples.test.ts",
  "test/browser/dashboard-agents.test.ts",
  "test/faults/full-disk.long.test.ts",
  "test/faults/agents-plain-store.long.test.ts",
  "test/faults/agents-damaged-file.long.test.ts",
  "test/browser/dashboard-cluster.long.test.ts",
  "test/faults/postgres-hangs.long.test.ts",
  "test/cluster/agents-take-over.long.test.ts",
  "test/faults/migrations-killed.long.test.ts",
  "test/chaos/rolling-restarts.long.test.ts",
  "test/examples/cluster.long.test.ts",
  "test/conformance/command-line.test.ts",
  "test/faults/webhooks-kill.long.test.ts",
  "test/cluster/paused-node.long.test.ts",
  "packages/signalbox/src/database/postgres/postgres-limits.test.ts",
  "packages/signalbox/src/tags/store/tag-store.test.ts",
  "test/hostile/fuzzing.long.test.ts",
  "test/browser/original-use-agent-chat.long.test.ts",
  "test/hostile/cluster-port.test.ts",
  "test/cluster/original-clients.long.test.ts",
  "packages/signalbox/src/tags/store/tag-store-postgres.test.ts",
  "packages/signalbox/src/engines/call-log/postgres/postgres-contract.test.ts",
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
