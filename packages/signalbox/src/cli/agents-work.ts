/** `signalbox agents …`: queue, dead letters and schedules of an instance, and the dead letters of all instances of an agent. */
import type { DeadLetter, InstanceApi, QueueItem, Schedule } from "@signalbox/client";
import { spanOf } from "./ago.ts";
import { type Command, type CommandContext, UsageError } from "./command.ts";
import { INSTANCE_OPTIONS, INSTANCE_POSITIONALS, instanceOf } from "./instance-options.ts";
import { table, toCell } from "./table.ts";

const WITH_IDS: readonly string[] = ["<agent>", "<name>", "<ids...>"];

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
    words: ["agents", "queue", "delete"],
    positionals: WITH_IDS,
    summary: "Remove waiting queue items.",
    options: INSTANCE_OPTIONS,
    run: (context) => forEachId(context, "removed", (instance, id) => instance.removeQueueItem(id)),
  },
  {
    words: ["agents", "queue", "run"],
    positionals: WITH_IDS,
    summary: "Move waiting queue items to the front of the queue, without their delays.",
    options: INSTANCE_OPTIONS,
    run: (context) => forEachId(context, "runs now", (instance, id) => instance.runQueueItem(id)),
  },
  {
    words: ["agents", "schedules", "delete"],
    positionals: WITH_IDS,
    summary: "Cancel schedules.",
    options: INSTANCE_OPTIONS,
    run: (context) => forEachId(context, "removed", (instance, id) => instance.removeSchedule(id)),
  },
  {
    words: ["agents", "schedules", "run"],
    positionals: WITH_IDS,
    summary: "Run schedules now; recurring ones keep their next times.",
    options: INSTANCE_OPTIONS,
    run: (context) => forEachId(context, "runs now", (instance, id) => instance.runSchedule(id)),
  },
  {
    words: ["agents", "dead-letters", "delete"],
    positionals: ["<agent>", "<name>", "[ids...]"],
    summary: "Discard dead letters: the given ids, or all with --all.",
    options: [{ name: "all", summary: "all dead letters of the instance" }, ...INSTANCE_OPTIONS],
    async run(context) {
      const ids = requireIdsOrAll(context, 2);
      if (ids !== null)
        return forEachId(context, "removed", (instance, id) => instance.discardDeadLetter(id));
      const instance = await instanceOf(context);
      let discarded = 0;
      for (let remaining = 1; remaining > 0;) {
        const step = await instance.discardDeadLetters();
        discarded += step.discarded;
        remaining = step.discarded === 0 ? 0 : step.remaining;
      }
      context.print({ discarded }, () => `discarded ${discarded}\n`);
      return 0;
    },
  },
  {
    words: ["agents", "dead-letters", "replay"],
    positionals: ["<agent>", "[name]", "[ids...]"],
    summary:
      "Return dead letters to the queue: the given ids, or all of an instance or of an agent with --all.",
    options: [
      { name: "all", summary: "all dead letters of the instance; without a name, of all instances" },
      ...INSTANCE_OPTIONS,
    ],
    run: (context) => (context.positionals.length < 2 ? replayAgent(context) : replayInstance(context)),
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
    run: replayInstance,
  },
];

async function replayInstance(context: CommandContext): Promise<number> {
  const ids = requireIdsOrAll(context, 2);
  const instance = await instanceOf(context);
  const replayed = await instance.replayDeadLetters(ids ?? undefined);
  context.print({ replayed }, () => `replayed ${replayed}\n`);
  return replayed < (ids?.length ?? 0) ? 1 : 0;
}

/** Step by step: an agent may have more instances than one request can visit. */
async function replayAgent(context: CommandContext): Promise<number> {
  if (!context.hasSwitch("all")) throw new UsageError("give the name of an instance, or --all");
  const { agents } = await context.account();
  const [agent = ""] = context.positionals;
  const sum = { replayed: 0, instances: 0, failed: [] as { name: string; error: string }[] };
  let cursor: string | undefined;
  do {
    const step = await agents.replayDeadLetters(agent, { cursor });
    sum.replayed += step.replayed;
    sum.instances += step.instances;
    sum.failed.push(...step.failed);
    cursor = step.cursor ?? undefined;
    if (!context.isJson && cursor !== undefined)
      context.out.write(`replayed ${sum.replayed}, ${step.remaining_instances} instances to go\n`);
  } while (cursor !== undefined);
  context.print(sum, ({ replayed, instances, failed }) =>
    [
      `replayed ${replayed} of ${instances} instances`,
      ...failed.map(({ name, error }) => `${name}: ${error}`),
      "",
    ].join("\n"),
  );
  return sum.failed.length > 0 ? 1 : 0;
}

/** Null for `--all`. */
function requireIdsOrAll(context: CommandContext, from: number): readonly string[] | null {
  const ids = context.positionals.slice(from);
  if (ids.length > 0 === context.hasSwitch("all")) throw new UsageError("give ids of dead letters, or --all");
  return ids.length > 0 ? ids : null;
}

/** The first error ends the command: what was done before it is printed. */
async function forEachId(
  context: CommandContext,
  done: string,
  work: (instance: InstanceApi, id: string) => Promise<void>,
): Promise<number> {
  const instance = await instanceOf(context);
  for (const id of context.positionals.slice(2)) {
    await work(instance, id);
    context.print({ id }, () => `${id} ${done}\n`);
  }
  return 0;
}

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
  return schedule.interval_seconds === null ? "once" : `every ${spanOf(schedule.interval_seconds)}`;
}
