/** The storage of one object for tests, on a real database. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Clock } from "../../core/clock.ts";
import { systemClock } from "../../core/clock.ts";
import { type InstanceDatabase, openInstanceStore } from "../../engines/instance-store/index.ts";
import { TurnRuntime } from "../../engines/turn-runtime/index.ts";
import { BASE_SCHEMA, RESERVED_NAMES } from "../instance/base-schema.ts";
import { ChangeCounters } from "./change-counters.ts";
import { type AlarmInfo, ObjectAlarm } from "./object-alarm.ts";
import { createLogger } from "../../telemetry/logger.ts";
import { ObjectPast, ObjectPasts } from "./object-past.ts";
import { OBJECT_SCHEMA } from "./object-schema.ts";
import { ObjectStorage } from "./object-storage.ts";

export interface TestStorage {
  readonly database: InstanceDatabase;
  readonly storage: ObjectStorage;
  readonly alarm: ObjectAlarm;
  readonly runtime: TurnRuntime<null>;
  /** Another alarm on the same storage, as after a restart. */
  createAlarm(): ObjectAlarm;
  /** Due times that the catalog would have received. */
  readonly due: (number | null)[];
  close(): Promise<void>;
}

export interface StorageOptions {
  readonly clock?: Clock;
  readonly ring?: (info: AlarmInfo) => unknown;
  readonly isStorageDown?: () => boolean;
  readonly onGiveUp?: (error: unknown) => void;
}

export async function openStorage(options: StorageOptions = {}): Promise<TestStorage> {
  const folder = await mkdtemp(join(tmpdir(), "signalbox-storage-"));
  const store = await openInstanceStore("journal", {
    folder,
    baseSchema: BASE_SCHEMA,
    reservedNames: RESERVED_NAMES,
    segmentBytes: 2 ** 20,
    onFailure: fail,
    onStall: fail,
  });
  const database = await store.open("object", OBJECT_SCHEMA);
  const runtime = new TurnRuntime<null>({
    owner: {},
    key: "object",
    maxWaiting: 100,
    timeoutMs: 0,
    isInterleaving: true,
    keepsFailedWrites: true,
    createOverloadError: () => new Error("overloaded"),
    createTimeoutError: () => new Error("timed out"),
    onTurnEnd: () => undefined,
    onIdle: () => undefined,
    onCommitFailure: fail,
  });
  runtime.open(database, () => database.sync());
  await runtime.start(null, { kind: "start", label: "", isInternal: true, body: () => undefined });
  const { outputs, transactions } = runtime;
  const counters = new ChangeCounters(database);
  const due: (number | null)[] = [];
  const createAlarm = () =>
    new ObjectAlarm({
      database,
      transactions,
      counters,
      clock: options.clock ?? systemClock,
      onDue: (at) => due.push(at),
      run: (body) => runtime.run({ kind: "alarm", label: "", isInternal: true, body }),
      passGate: () => outputs.pass(),
      ring: options.ring ?? (() => undefined),
      isStorageDown: options.isStorageDown ?? (() => false),
      onGiveUp: options.onGiveUp ?? (() => undefined),
    });
  const alarm = createAlarm();
  const past = new ObjectPast(
    new ObjectPasts({
      store,
      ownership: null,
      clock: options.clock ?? systemClock,
      logger: createLogger({ level: "silent", isPretty: false }),
      historyDays: 0,
    }),
    {
      ref: { account: "default", agent: "object", name: "object" },
      database,
      transactions,
      outputs,
      hold: () => () => undefined,
    },
  );
  const storage = new ObjectStorage({
    database,
    transactions,
    counters,
    outputs,
    alarm,
    past,
    hasAlarmHandler: () => true,
    isFacet: false,
    block: () => runtime.block(),
    reset: fail,
  });
  return {
    database,
    storage,
    alarm,
    createAlarm,
    runtime,
    due,
    async close() {
      alarm.stop();
      await runtime.whenQuiet();
      runtime.finish(() => new Error("closed"));
      await database.close();
      await store.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function fail(error: Error): never {
  throw error;
}
