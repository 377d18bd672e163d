/** `signalbox agents …`: agents, their instances and calls of their methods. */
import type { AccountClient, AgentConnection, InstanceDetail, InstanceQuery } from "@signalbox/client";
import { agentsImport } from "./agents-import.ts";
import { agentsTail } from "./agents-tail.ts";
import { agentsWorkCommands } from "./agents-work.ts";
import type { Command, CommandOption } from "./command.ts";
import { isApiError } from "./failure.ts";
import { INSTANCE_OPTIONS, INSTANCE_POSITIONALS, instanceOf } from "./instance-options.ts";
import { ACCOUNT_OPTION, CLIENT_OPTIONS } from "./options.ts";
import { table, toCell } from "./table.ts";

const PROBLEM_OPTION: CommandOption = {
  name: "problem",
  value: "KIND",
  summary: "only instances with this problem: dead_letters, retrying, stuck, error or any",
};

export const agentCommands: readonly Command[] = [
  {
    words: ["agents", "list"],
    summary: "List agents and their callable methods.",
    options: INSTANCE_OPTIONS,
    async run(context) {
      const agents = await (await context.account()).agents.list().all();
      context.print(agents, (rows) =>
        table(
          ["agent", "class", "instances", "callable"],
          rows.map((row) => [
            row.name,
            row.class_name,
            String(row.instance_count),
            row.callable.map(({ name }) => name).join(", "),
          ]),
          "no agents; load a file that exports agent classes with --agents",
        ),
      );
    },
  },
  {
    words: ["agents", "instances"],
    positionals: ["<agent>"],
    summary: "List the instances of an agent.",
    options: [
      { name: "search", value: "TEXT", summary: "only names that contain this text" },
      {
        name: "tag",
        value: "FILTER",
        summary: "only instances that match this tag filter (repeatable)",
        isRepeatable: true,
      },
      {
        name: "order",
        value: "ORDER",
        summary: "name (default), last_active, dead_letters or queued; the last three from the largest",
      },
      PROBLEM_OPTION,
      ...INSTANCE_OPTIONS,
    ],
    async run(context) {
      const { agents } = await context.account();
      const query = {
        search: context.option("search"),
        tag: context.options("tag"),
        // The service validates them.
        order: context.option("order") as InstanceQuery["order"],
        problem: context.option("problem") as InstanceQuery["problem"],
      };
      const instances = await agents.instances(context.positionals[0] ?? "", query).all();
      context.print(instances, (rows) => {
        // Only a cluster has nodes.
        const hasNodes = rows.some(({ node }) => node !== null);
        return table(
          [
            "name",
            "last active",
            "created",
            "in memory",
            "connections",
            "queued",
            "dead letters",
            ...(hasNodes ? ["node"] : []),
            "last error",
          ],
          rows.map((row) => [
            row.name,
            row.last_active_at,
            row.created_at,
            row.in_memory ? "yes" : "no",
            String(row.connection_count),
            String(row.queued),
            String(row.dead_letters),
            ...(hasNodes ? [row.node ?? "-"] : []),
            row.last_error ?? "",
          ]),
          "no instances",
        );
      });
    },
  },
  {
    words: ["agents", "problems"],
    summary:
      "List instances of all agents with dead letters, failing queue items, stuck turns or recent errors.",
    options: [
      { name: "agent", value: "NAME", summary: "only instances of this agent" },
      PROBLEM_OPTION,
      { name: "within", value: "SECONDS", summary: "errors of this time count (default: a day)" },
      { name: "stuck", value: "SECONDS", summary: "a turn that runs longer is stuck (default: 10)" },
      ...INSTANCE_OPTIONS,
    ],
    async run(context) {
      const { agents } = await context.account();
      const seconds = (name: string) =>
        context.option(name) === undefined ? undefined : Number(context.option(name));
      const found = await agents.problems({
        agent: context.option("agent"),
        problem: context.option("problem") as InstanceQuery["problem"],
        within: seconds("within"),
        stuck_seconds: seconds("stuck"),
      });
      context.print(found, ({ totals, instances, cursor }) => {
        const { dead_letters: letters, retrying, stuck, errors } = totals;
        const rows = instances.map((row) => [
          `${row.agent}/${row.name}`,
          row.problems.join(", "),
          String(row.dead_letters),
          String(row.retrying),
          row.busy_since ?? "-",
          row.last_error ?? "",
        ]);
        return (
          table(
            ["instance", "problems", "dead letters", "retrying", "busy since", "last error"],
            rows,
            "no problems",
          ) +
          (cursor === null ? "" : "only the first instances are shown\n") +
          `${totals.instances} instances: ${letters} dead letters, ${retrying} items retried, ${stuck} stuck, ${errors} with errors\n`
        );
      });
    },
  },
  {
    words: ["agents", "show"],
    positionals: INSTANCE_POSITIONALS,
    summary: "Show an instance: state, counts, last activity.",
    options: INSTANCE_OPTIONS,
    async run(context) {
      context.print(await (await instanceOf(context)).get(), showDetail);
    },
  },
  {
    words: ["agents", "call"],
    positionals: ["<agent>", "<name>", "<method>", "[arguments...]"],
    summary:
      "Call a method. An argument that is not valid JSON is passed as a string. A streaming method prints each piece as it arrives.",
    options: [
      {
        ...ACCOUNT_OPTION,
        summary: "account of the instance (default: the token's account; for the root token, default)",
      },
      ...CLIENT_OPTIONS,
    ],
    async run(context) {
      const [agent = "", name = "", method = "", ...args] = context.positionals;
      const client = await context.client();
      const account = context.option("account");
      const values = args.map(parseArgument);
      try {
        const result = await client.callAgent({ agent, name, account }, method, values);
        context.print(result, (value) => `${JSON.stringify(value, null, 2)}\n`);
      } catch (error) {
        // Refused before it ran: only a connection carries pieces.
        if (!isApiError(error) || error.id !== "invalid_request") throw error;
        if (!(await isStreaming(await context.account(), agent, method))) throw error;
        const connection = client.agent({ agent, name, ...(account === undefined ? {} : { account }) });
        const print = (value: unknown) => context.out.write(`${JSON.stringify(value)}\n`);
        await readStream(connection, method, values, print).finally(() => connection.close());
      }
    },
  },
  ...agentsWorkCommands,
  {
    words: ["agents", "sql"],
    positionals: ["<agent>", "<name>", "<statement>"],
    summary: "Run one read-only statement on a copy of an instance's database.",
    options: INSTANCE_OPTIONS,
    async run(context) {
      const result = await (await instanceOf(context)).sql(context.positionals[2] ?? "");
      context.print(result, ({ rows, truncated }) => {
        const columns = Object.keys(rows[0] ?? {});
        const cells = rows.map((row) => columns.map((column) => toCell(row[column])));
        return table(columns, cells, "no rows") + (truncated ? "only the first rows are shown\n" : "");
      });
    },
  },
  agentsTail,
  agentsImport,
  {
    words: ["agents", "move"],
    positionals: INSTANCE_POSITIONALS,
    summary: "Move an instance to another node of the cluster.",
    options: [
      { name: "to", value: "NODE", summary: "name or id of the node (default: the server selects one)" },
      ...INSTANCE_OPTIONS,
    ],
    async run(context) {
      const result = await (await instanceOf(context)).move(context.option("to"));
      context.print(result, ({ agent, name, node }) => `moved ${agent}/${name} to ${node}\n`);
    },
  },
  {
    words: ["agents", "delete"],
    positionals: INSTANCE_POSITIONALS,
    summary: "Delete an instance and everything it stored.",
    options: INSTANCE_OPTIONS,
    async run(context) {
      const result = await (await instanceOf(context)).destroy();
      context.print(result, ({ agent, name }) => `deleted ${agent}/${name}\n`);
    },
  },
];

function showDetail(detail: InstanceDetail): string {
  return [
    `${detail.agent}/${detail.name}`,
    `created      ${detail.created_at}`,
    `last active  ${detail.last_active_at}`,
    `in memory    ${detail.in_memory ? "yes" : "no"}`,
    ...(detail.node === null ? [] : [`node         ${detail.node}`]),
    `connections  ${detail.connection_count}`,
    ...(detail.busy_since === null
      ? []
      : [`busy since   ${detail.busy_since} (${detail.turn?.kind} ${detail.turn?.label})`]),
    `queue        ${detail.queue_count}`,
    `dead letters ${detail.dead_letter_count}`,
    `schedules    ${detail.schedule_count}`,
    `next due     ${detail.next_due_at ?? "-"}`,
    `state        ${JSON.stringify(detail.state, null, 2)}`,
    ...(detail.last_failure === null
      ? []
      : [
          `last failure ${detail.last_failure.at} (${detail.last_failure.kind} ${detail.last_failure.label})`,
          detail.last_failure.stack ?? `${detail.last_failure.name}: ${detail.last_failure.message}`,
        ]),
    "",
  ].join("\n");
}

/** The pieces, then the result if there is one. A connection that ends before fails the call: the method is not called a second time. */
async function readStream(
  connection: AgentConnection,
  method: string,
  args: unknown[],
  print: (value: unknown) => void,
): Promise<void> {
  let lost: Error | null = null;
  connection.on("status", (status) => {
    if (status !== "waiting") return;
    lost = connection.snapshot.error;
    connection.close();
  });
  connection.open();
  try {
    const pieces = connection.stream(method, [...args]);
    for await (const piece of pieces) print(piece);
    const result = await pieces.result;
    if (result !== undefined && result !== null) print(result);
  } catch (error) {
    throw lost ?? error;
  }
}

async function isStreaming({ agents }: AccountClient, agent: string, method: string): Promise<boolean> {
  const rows = await agents.list().all();
  const row = rows.find(({ name, class_name: title }) => name === agent || title === agent);
  return row?.callable.find(({ name }) => name === method)?.streaming === true;
}

function parseArgument(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
