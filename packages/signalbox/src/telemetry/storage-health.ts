/** The state of storage, for `/readyz` and as metrics. Every problem reported here ends by itself when its cause does. */
import type { Registry } from "prom-client";
import type { CallLog } from "../engines/call-log/index.ts";
import type { Database } from "../database/database.ts";
import type { InstanceStore } from "../engines/instance-store/index.ts";
import { registerGauge, registerMetric } from "./instruments.ts";

export interface StorageParts {
  readonly database: Pick<Database, "problem">;
  readonly "call log": Pick<CallLog, "problem" | "droppedCalls" | "queuedCalls">;
  readonly agents: Pick<InstanceStore, "problem">;
}

export class StorageHealth {
  readonly #parts: StorageParts;

  constructor(registry: Registry, parts: StorageParts) {
    this.#parts = parts;
    registerMetric(
      registry,
      "signalbox_storage_problem",
      "1 while a part of storage cannot write; /readyz reports the reason.",
      "gauge",
      () =>
        Object.entries(parts).map(([part, { problem }]) => ({
          value: problem === null ? 0 : 1,
          labels: { part },
        })),
    );
    const callLog = parts["call log"];
    registerMetric(
      registry,
      "signalbox_call_log_dropped_total",
      "Calls missing from the log because it could not be written.",
      "counter",
      () => [{ value: callLog.droppedCalls, labels: {} }],
    );
    registerGauge(
      registry,
      { name: "signalbox_call_log_queued", help: "Calls waiting to be written to the log." },
      () => callLog.queuedCalls,
    );
  }

  /** `part: problem`, for each part that has one. */
  problems(): string[] {
    return Object.entries(this.#parts).flatMap(([part, { problem }]) =>
      problem === null ? [] : [`${part}: ${problem}`],
    );
  }
}
