/** `signalbox agents …`: queue, dead letters and schedules of an instance. */
import type { DeadLetter, QueueItem, Schedule } from "@signalbox/client";
import { type Command, type CommandContext, UsageError } from "./command.ts";
import { INSTANCE_OPTIONS, INSTANCE_POSITIONALS, instanceOf } from "./instance-options.ts";
import { table, toCell } from "./table.ts";

export const agentsWorkCommands: readonly Command[] = [
  {
    words: ["agents", "queue"],
    positionals: INSTANCE_POSITIONALS,
    summary: "List the waiting queue items of an instance.",
    options: INSTANCE_OPTIONS,
    async run(context) {
      printItems(context, await (await instanceOf(context)).queue().all(), "the queue is empty");
    },
  },
  {
    words: ["agents", "dead-letters"],
    positionals: INSTANCE_POSITIONALS,
    summary: "List queue items and scheduled calls that failed in all attempts.",
    options: INSTANCE_OPTIONS,
    async run(context) {
      printItems(context, await (await instanceOf(context)).deadLetters().all(), "no dead letters");
    },
  },
  {
    words: ["agents", "schedules"],
    positionals: INSTANCE_POSITIONALS,
    summary: "List the schedules of an instance.",
    options: INSTANCE_OPTIONS,
    async run(context) {
      const schedules = await (await instanceOf(context)).schedules().all();
      context.print(schedules, (rows) =>
        table(
          ["id", "method", "due", "repeats"],
          rows.map((row) => [row.id, row.callback, row.due_at, repeats(row)]),
          "no schedules",
        ),
      );
    },
  },
  {
    words: ["agents", "replay"],
    positionals: ["<agent>", "<name>", "[ids...]"],
    summary: "Return dead letters to the queue: the given ids, or all with --all.",
    options: [{ name: "all", summary: "all dead letters of the instance" }, ...INSTANCE_OPTIONS],
    async run(context) {
      const ids = context.positionals.slice(2);
      if (ids.length > 0 === context.hasSwitch("all"))
        throw new UsageError("give ids of dead letters, or --all");
      const instance = await instanceOf(context);
      const replayed = await instance.replayDeadLetters(ids.length > 0 ? ids : undefined);
      context.print({ replayed }, () => `replayed ${replayed}\n`);
      return replayed < ids.length ? 1 : 0;
    },
  },
];

function printItems(
  context: CommandContext,
  items: readonly (QueueItem | DeadLetter)[],
  whenEmpty: string,
): void {
  context.print(items, (rows) =>
    table(
      ["id", "method", "attempts", "created", "payload", "error"],
      rows.map((row) => [
        row.id,
        row.callback,
        String(row.attempts),
        row.created_at,
        toCell(row.payload),
        ("error" in row ? row.error : row.last_error) ?? "",
      ]),
      whenEmpty,
    ),
  );
}

function repeats(schedule: Schedule): string {
  if (schedule.cron !== null) return schedule.cron;
  return schedule.interval_seconds === null ? "once" : `every ${schedule.interval_seconds} s`;
}
