/**
 * Cron triggers of the worker, and schedules of its workflows: one object whose alarm is the next due time of any trigger. As an object it runs once in a cluster, and where the
 * others are. Times that passed while no server ran are not made up, as with the originals.
 */
import { Cron } from "croner";
import { DurableObject } from "../../agents/index.ts";
import { ConfigError } from "../../config/index.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { ScheduledEvent } from "../program/worker-runtime.ts";

export interface CronParts {
  readonly logger: Logger;
  /** The triggers of the program that runs: what is due, by its cron expression. */
  readonly triggers: readonly CronTrigger[];
}

export interface CronTrigger {
  readonly cron: string;
  run(event: ScheduledEvent): Promise<unknown>;
}

interface CronStorage {
  readonly kv: { get(key: string): unknown; put(key: string, value: unknown): void };
  setAlarm(time: number): Promise<void>;
  getAlarm(): Promise<number | null>;
  deleteAlarm(): Promise<void>;
}

/** Triggers up to this time have run. */
const CHECKED_AT = "checkedAt";
/** The triggers that are set. */
const CRONS = "crons";
/** Another node takes over in less. */
const LATE_MS = 30_000;

/** Throws for a pattern that is not a cron expression. The days of the week are 1 (Sunday) to 7 or names, as in the originals. */
export function nextRun(pattern: string, after: number): number | null {
  const cron = new Cron(pattern, {
    paused: true,
    timezone: "UTC",
    mode: "5-part",
    alternativeWeekdays: true,
  });
  return cron.nextRun(new Date(after))?.getTime() ?? null;
}

export function checkCrons(crons: readonly string[]): void {
  for (const cron of crons) {
    try {
      nextRun(cron, Date.now());
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new ConfigError(`worker: triggers.crons: "${cron}" is not a cron expression: ${reason}`, {
        cause,
      });
    }
  }
}

export function createCronClass(parts: CronParts): typeof CronObject {
  return class extends CronObject {
    protected override readonly parts = parts;
  };
}

export class CronObject extends DurableObject {
  protected readonly parts: CronParts | undefined = undefined;
  readonly #storage: CronStorage;

  constructor(ctx: unknown, env: unknown) {
    super(ctx, env);
    this.#storage = (ctx as { storage: CronStorage }).storage;
  }

  /**
   * The triggers run from now on. Each node of a cluster calls it when it starts: a trigger that is set, or due for less than `LATE_MS` because its node
   * was lost, stays.
   */
  async begin(): Promise<void> {
    const now = Date.now();
    const crons = JSON.stringify(this.#triggers.map(({ cron }) => cron));
    const isSame = this.#storage.kv.get(CRONS) === crons;
    const alarmAt = isSame ? await this.#storage.getAlarm() : null;
    if (alarmAt !== null && alarmAt > now - LATE_MS) return;
    this.#storage.kv.put(CRONS, crons);
    await this.#schedule(now);
  }

  async alarm(): Promise<void> {
    const checkedAt = Number(this.#storage.kv.get(CHECKED_AT) ?? Date.now());
    const now = Date.now();
    const due = this.#triggers.flatMap((trigger) => {
      const at = nextRun(trigger.cron, checkedAt);
      return at !== null && at <= now ? [{ trigger, scheduledTime: at }] : [];
    });
    // Before the handlers: a crash while they run must not repeat them.
    await this.#schedule(now);
    await Promise.all(due.map(({ trigger, scheduledTime }) => this.#run(trigger, scheduledTime)));
  }

  /** A program without triggers ends those of an earlier one. */
  get #triggers(): readonly CronTrigger[] {
    return this.parts?.triggers ?? [];
  }

  async #run({ cron, run }: CronTrigger, scheduledTime: number): Promise<void> {
    try {
      await run({ cron, scheduledTime });
    } catch (err) {
      this.parts?.logger.error({ err, cron }, "the scheduled handler of the worker failed");
    }
  }

  async #schedule(checkedAt: number): Promise<void> {
    this.#storage.kv.put(CHECKED_AT, checkedAt);
    const times = this.#triggers.flatMap(({ cron }) => nextRun(cron, checkedAt) ?? []);
    if (times.length === 0) await this.#storage.deleteAlarm();
    else await this.#storage.setAlarm(Math.min(...times));
  }
}
