/** `signalbox tags change`, `tags jobs` and `tags cancel-job`: changes of many resources in the background. */
import { setTimeout as sleep } from "node:timers/promises";
import type { TagJob, TagJobRequest } from "@signalbox/client";
import { type Command, type CommandContext, type CommandOption, UsageError } from "./command.ts";
import { ACCOUNT_OPTION, CLIENT_OPTIONS } from "./options.ts";
import { table } from "./table.ts";
import { parseTagChanges } from "./tags.ts";

const OPTIONS: readonly CommandOption[] = [ACCOUNT_OPTION, ...CLIENT_OPTIONS];
const POLL_MS = 500;
/** Failures that are shown with a job. */
const SHOWN_FAILURES = 100;

export const tagJobCommands: readonly Command[] = [
  {
    words: ["tags", "change"],
    positionals: ["[key=value|key-...]"],
    summary:
      "Change the tags of all resources that match, in the background: add or change tags, `key-` removes one. The exit code of --wait is 1 if a resource could not be changed.",
    options: [
      {
        name: "tag",
        value: "FILTER",
        summary: "only resources that match: key, key=a,b, !key, key!=a (repeatable)",
        isRepeatable: true,
      },
      {
        name: "type",
        value: "TYPE",
        summary: "only resources of this type (repeatable)",
        isRepeatable: true,
      },
      { name: "name", value: "TEXT", summary: "only resources whose name contains this text" },
      { name: "ignore-case", summary: "ignore case in keys and values of filters" },
      { name: "all", summary: "all tagged resources, in place of a filter" },
      { name: "replace", summary: "replace all tags of each resource by the given ones" },
      { name: "delete", summary: "delete all tags of each resource" },
      { name: "dry-run", summary: "print only the number of resources" },
      { name: "wait", summary: "wait until the job has ended" },
      ...OPTIONS,
    ],
    run: change,
  },
  {
    words: ["tags", "jobs"],
    positionals: ["[id]"],
    summary: "List jobs, or show the progress of one and the resources that it could not change.",
    options: OPTIONS,
    async run(context) {
      const [id] = context.positionals;
      if (id !== undefined) {
        await show(context, id);
        return;
      }
      const { tags } = await context.account();
      const { items } = await tags.jobs().page();
      context.print(items, (jobs) =>
        table(
          ["id", "created", "operation", "state", "processed", "total", "failed"],
          jobs.map((job) => [
            job.id,
            job.created_at,
            job.operation,
            job.state,
            String(job.processed),
            String(job.total),
            String(job.failed),
          ]),
          "no jobs",
        ),
      );
    },
  },
  {
    words: ["tags", "cancel-job"],
    positionals: ["<id>"],
    summary: "Cancel a job. Changes that it has made stay.",
    options: OPTIONS,
    async run(context) {
      const { tags } = await context.account();
      context.print(await tags.cancelJob(context.positionals[0] ?? ""), inOneLine);
    },
  },
];

async function change(context: CommandContext): Promise<number> {
  const { tags } = await context.account();
  const request = requestOf(context);
  if (context.hasSwitch("dry-run")) {
    context.print({ total: await tags.planJob(request) }, ({ total }) => `${total} resources\n`);
    return 0;
  }
  const job = await tags.createJob(request);
  if (!context.hasSwitch("wait")) {
    context.print(job, ({ id, total }) => `job ${id}: ${total} resources\n`);
    return 0;
  }
  for (let { state } = job; state === "running";) {
    await sleep(POLL_MS);
    ({ state } = await tags.job(job.id));
  }
  const ended = await show(context, job.id);
  return ended.state === "done" && ended.failed === 0 ? 0 : 1;
}

function requestOf(context: CommandContext): TagJobRequest {
  const changes = parseTagChanges(context.positionals);
  const isDeletion = context.hasSwitch("delete");
  if (isDeletion && (context.positionals.length > 0 || context.hasSwitch("replace")))
    throw new UsageError("--delete takes no tags");
  return {
    operation: isDeletion ? "delete" : context.hasSwitch("replace") ? "set" : "patch",
    ...(isDeletion ? {} : { tags: changes }),
    tag: context.options("tag"),
    type: context.options("type"),
    name: context.option("name"),
    case_insensitive: context.hasSwitch("ignore-case"),
    ...(context.hasSwitch("all") ? { all: true } : {}),
  };
}

async function show(context: CommandContext, id: string): Promise<TagJob> {
  const { tags } = await context.account();
  const job = await tags.job(id);
  const failures = job.failed === 0 ? [] : await tags.jobFailures(id).all(SHOWN_FAILURES);
  context.print({ ...job, failures }, () =>
    [
      inOneLine(job),
      ...failures.map(({ type, id: resource, errors }) => {
        const reasons = errors.map(({ code, message }) => `${message} (code ${code})`).join("; ");
        return `${type} ${resource}: ${reasons}\n`;
      }),
    ].join(""),
  );
  return job;
}

function inOneLine({ state, processed, total, changed, unchanged, failed }: TagJob): string {
  return `${state}: ${processed} of ${total} resources, ${changed} changed, ${unchanged} unchanged, ${failed} failed\n`;
}
