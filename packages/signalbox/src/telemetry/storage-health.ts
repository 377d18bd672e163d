/** What is wrong with storage at the moment: for `/readyz`, and as metrics. Every part becomes well again by itself. */
import type { Registry } from "prom-client";
import { metricReader } from "./plain-metrics.ts";
import type { CallLog } from "../engines/call-log/index.ts";
import type { Database } from "../database/database.ts";
import type { InstanceStore } from "../engines/instance-store/index.ts";

export interface StorageParts {
  readonly database: Pick<Database, "problem">;
  readonly "call log": Pick<CallLog, "problem" | "droppedCalls" | "queuedCalls">;
  readonly agents: Pick<InstanceStore, "problem">;
}

export class StorageHealth {
  readonly #parts: StorageParts;

  constructor(registry: Registry, parts: StorageParts) {
    this.#parts = parts;
    registry.registerMetric(
      metricReader(
        "signalbox_storage_problem",
        "1 while a part of storage cannot write; /readyz says why.",
        "gauge",
        () =>
          Object.entries(parts).map(([part, { problem }]) => ({
            value: problem === null ? 0 : 1,
            labels: { part },
          })),
      ),
    );
    const callLog = parts["call log"];
    registry.registerMetric(
      metricReader(
        "signalbox_call_log_dropped_total",
        "Calls that are not in the log because it could not be written.",
        "counter",
        () => [{ value: callLog.droppedCalls, labels: {} }],
      ),
    );
    registry.registerMetric(
      metricReader("signalbox_call_log_queued", "Calls that wait to be written to the log.", "gauge", () => [
        { value: callLog.queuedCalls, labels: {} },
      ]),
    );
  }

  /** `part: what is wrong`, one for each part that has a problem. */
  problems(): string[] {
    return Object.entries(this.#parts).flatMap(([part, { problem }]) =>
      problem === null ? [] : [`${part}: ${problem}`],
    );
  }
}
