/** Reads an instance for the management interface, whether or not the instance is in memory or busy. Reading does not wake it. */
import type { Clock } from "../../core/clock.ts";
import { overloaded } from "../../core/overload.ts";
import type { InstanceDatabase, InstanceStore } from "../../engines/instance-store/index.ts";
import { databaseName, type InstanceRef } from "./instance-ref.ts";
import type { DeadLetters } from "../work/dead-letters.ts";
import { openWork } from "../work/open-work.ts";
import type { Schedules } from "../work/schedules.ts";
import type { WorkPump } from "../work/work-pump.ts";
import type { WorkQueue } from "../work/work-queue.ts";
import { InstanceState } from "./instance-state.ts";

/** How often a waiting reader checks that the disk has room. */
const ROOM_CHECK_MS = 1000;

/** The parts of an instance that can be read. */
export interface InstanceReader {
  readonly database: InstanceDatabase;
  readonly state: Pick<InstanceState, "committed">;
  readonly workQueue: Pick<WorkQueue, "list" | "count" | "find" | "nextAt">;
  readonly deadLetters: Pick<DeadLetters, "list" | "count" | "find">;
  readonly schedules: Pick<Schedules, "states" | "count" | "nextAt">;
  /** Knows which work runs. */
  readonly pump: Pick<WorkPump, "isRunning">;
}

/** A reader on the database of an instance that is not in memory. */
export function readerOf(database: InstanceDatabase, clock: Clock): InstanceReader {
  return {
    database,
    state: new InstanceState(database, NO_WRITES, 0),
    ...openWork(database, NO_WRITES, clock, NO_CHANGES),
    pump: { isRunning: () => false },
  };
}

const NO_CHANGES = { workChanged: () => undefined, lettersChanged: () => undefined };

const NO_WRITES = {
  open(): never {
    throw new Error("an instance that is not in memory cannot be written to");
  },
  join: () => undefined,
};

/** Reads an instance that is not in memory from its file, without running any of its code. */
export async function readStored<T>(
  store: InstanceStore,
  ref: InstanceRef,
  clock: Clock,
  work: (reader: InstanceReader) => T,
): Promise<T> {
  const database = await store.openToRead(databaseName(ref));
  try {
    return work(readerOf(database, clock));
  } finally {
    await database.close();
  }
}

/** How long a reader waits for an object that is inside a transaction of its own. */
const MAX_TRANSACTION_MS = 1000;

/** Gives up when an object keeps a transaction open: what it has written is not committed, and must not be seen. */
export function requireShortTransaction(waitedMs: number): void {
  if (waitedMs > MAX_TRANSACTION_MS)
    throw overloaded("The object is inside a transaction of its own and cannot be read until it ends", {
      "retry-after": "1",
    });
}

/** Waits, but only as long as the disk has room: a full disk can delay an instance for hours, and a reader should receive the reason. */
export async function unlessDiskFull<T>(store: InstanceStore, awaited: Promise<T>): Promise<T> {
  const refusal = Promise.withResolvers<never>();
  const timer = setInterval(() => {
    try {
      store.requireRoom();
    } catch (error) {
      refusal.reject(error);
    }
  }, ROOM_CHECK_MS);
  try {
    return await Promise.race([awaited, refusal.promise]);
  } finally {
    clearInterval(timer);
  }
}
