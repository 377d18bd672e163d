/** The instances of a cluster as operators see them: counters of this node, and the size of the histories in PostgreSQL, which is sampled. */
import type { Registry } from "prom-client";
import { repeat, type Repetition } from "../core/repeat.ts";
import type {
  HistorySize,
  OwnershipFigures,
  SharedInstanceStore,
  TakeOver,
} from "../engines/instance-store/index.ts";
import type { Logger } from "../telemetry/logger.ts";
import { registerGauge, registerMetric } from "../telemetry/instruments.ts";

/** Reading the sizes takes some milliseconds of the server. */
const SAMPLE_MS = 30_000;
/** An old snapshot makes PostgreSQL keep deleted records, and every node slower in the end. */
const OLD_SNAPSHOT_MS = 10 * 60_000;

const COUNTERS: readonly (readonly [keyof OwnershipFigures, string, string])[] = [
  ["claims", "claims", "Instances that this node has claimed; each claim begins another epoch."],
  ["takeOvers", "take_overs", "Instances that this node has taken from a node that was gone."],
  [
    "refusals",
    "refusals",
    "Records of this node that PostgreSQL refused, because another node had the instance.",
  ],
  [
    "unknownOutcomes",
    "unknown_outcomes",
    "Writes whose connection was cut, so that their outcome had to be read.",
  ],
  ["appends", "appends", "Statements that have written records of instances."],
  ["records", "records", "Records of instances that PostgreSQL has acknowledged."],
  ["bytes", "record_bytes", "Compressed size of these records."],
  ["restores", "restores", "Instances that were read from PostgreSQL because this node had no current copy."],
  ["cacheHits", "cache_hits", "Instances that were opened from the copy on the disk of this node."],
  ["compactions", "snapshots", "Snapshots of instances that this node has written."],
  ["lostRecords", "lost_records", "Acknowledged records that PostgreSQL does not have any more."],
];

export class SharedAgentsReport {
  readonly #store: SharedInstanceStore;
  readonly #logger: Logger;
  #sizes: readonly HistorySize[] = [];
  #sampling: Repetition | null = null;
  #hasOldSnapshot = false;

  constructor(store: SharedInstanceStore, logger: Logger) {
    this.#store = store;
    this.#logger = logger;
  }

  start(registry: Registry): void {
    const { ownership } = this.#store;
    const name = (suffix: string) => `signalbox_agent_store_${suffix}`;
    for (const [figure, suffix, help] of COUNTERS)
      registerMetric(registry, "counter", { name: name(`${suffix}_total`), help }, () => [
        { value: ownership.figures[figure], labels: {} },
      ]);
    const gauges: readonly (readonly [string, string, () => number])[] = [
      ["held_instances", "Instances that this node owns, in memory or not.", () => this.held],
      [
        "lag_seconds",
        "Age of the oldest record that PostgreSQL has not acknowledged.",
        () => this.#store.lagMs / 1000,
      ],
      ["log_records", "Records in PostgreSQL, about; sampled.", () => this.size.records],
      ["log_bytes", "Size of records and snapshots in PostgreSQL; sampled.", () => this.size.bytes],
      [
        "oldest_snapshot_seconds",
        "Age of the oldest snapshot that a session of PostgreSQL holds; sampled.",
        () => this.size.oldestSnapshotMs / 1000,
      ],
      [
        "oldest_transaction_age",
        "Transactions since the oldest one that a session or a replication slot may still read; sampled.",
        () => this.size.oldestTransactionAge,
      ],
    ];
    for (const [suffix, help, read] of gauges) registerGauge(registry, { name: name(suffix), help }, read);
    const onError = (err: unknown) =>
      this.#logger.debug({ err }, "cannot read the size of the instances' histories");
    void this.#sample().catch(onError);
    this.#sampling = repeat(SAMPLE_MS, () => this.#sample(), onError);
  }

  async close(): Promise<void> {
    await this.#sampling?.stop();
  }

  get figures(): OwnershipFigures {
    return this.#store.ownership.figures;
  }

  /** Oldest first. */
  get recentTakeOvers(): readonly TakeOver[] {
    return this.#store.ownership.recentTakeOvers;
  }

  get held(): number {
    return [...this.#store.ownership.held].length;
  }

  get lagMs(): number {
    return this.#store.lagMs;
  }

  /** Of all stores together: sums, and the highest ages. */
  get size(): HistorySize {
    const highest = (read: (size: HistorySize) => number) => Math.max(0, ...this.#sizes.map(read));
    const sum = (read: (size: HistorySize) => number) => this.#sizes.reduce((all, one) => all + read(one), 0);
    return {
      records: sum(({ records }) => records),
      bytes: sum(({ bytes }) => bytes),
      oldestSnapshotMs: highest(({ oldestSnapshotMs }) => oldestSnapshotMs),
      oldestTransactionAge: highest(({ oldestTransactionAge }) => oldestTransactionAge),
    };
  }

  async #sample(): Promise<void> {
    this.#sizes = await this.#store.readSizes();
    const { oldestSnapshotMs } = this.size;
    const isOld = oldestSnapshotMs > OLD_SNAPSHOT_MS;
    if (isOld && !this.#hasOldSnapshot)
      this.#logger.warn(
        { seconds: Math.round(oldestSnapshotMs / 1000) },
        "a session of PostgreSQL holds an old snapshot (a backup, a report, a forgotten transaction): deleted records of instances cannot be removed",
      );
    this.#hasOldSnapshot = isOld;
  }
}
