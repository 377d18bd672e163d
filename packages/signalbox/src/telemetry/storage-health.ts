/** The state of storage, for `/readyz` and the metrics. A problem disappears when its cause ends. */
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
      "gauge",
      {
        name: "signalbox_storage_problem",
        help: "1 while a part of storage cannot write; /readyz reports the reason.",
        labels: ["part"],
      },
      () =>
        Object.entries(parts).map(([part, { problem }]) => ({
          value: problem === null ? 0 : 1,
          labels: { part },
        })),
    );
    const callLog = parts["call log"];
    registerMetric(
      registry,
      "counter",
      {
        name: "signalbox_call_log_dropped_total",
        help: "Calls missing from the log because it could not be written.",
      },
      () => [{ value: callLog.droppedCalls, labels: {} }],
    );
    registerGauge(
      registry,
      { name: "signalbox_call_log_queued", help: "Calls waiting to be written to the log." },
      () => callLog.queuedCalls,
    );
  }

  /** Returns `part: problem` for each part with a problem. */
  problems(): string[] {
    return Object.entries(this.#parts).flatMap(([part, { problem }]) =>
      problem === null ? [] : [`${part}: ${problem}`],
    );
  }
}
