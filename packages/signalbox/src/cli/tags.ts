/** `signalbox tags …`: read, change and find tags. */
import { type Command, type CommandContext, type CommandOption, UsageError } from "./command.ts";
import type { Envelope } from "./management-client.ts";
import { ACCOUNT_OPTION, CLIENT_OPTIONS } from "./options.ts";
import { table } from "./table.ts";

interface ShownResource {
  readonly type: string;
  readonly id: string;
  readonly name: string;
  readonly etag: string;
  readonly tags: Readonly<Record<string, string>>;
}

const SCOPE_OPTIONS: readonly CommandOption[] = [ACCOUNT_OPTION, ...CLIENT_OPTIONS];
const ETAG_OPTION: CommandOption = {
  name: "if-match",
  value: "ETAG",
  summary: "only if the resource's tags still have this etag",
};
const RESOURCE = ["<type>", "<id>"];

export const tagCommands: readonly Command[] = [
  {
    words: ["tags", "get"],
    positionals: RESOURCE,
    summary: "Show the tags of a resource.",
    options: SCOPE_OPTIONS,
    async run(context) {
      const client = await context.client();
      const query = new URLSearchParams(resourceOf(context));
      const found = await client.request<ShownResource>("GET", `${tagsPath(context)}?${query.toString()}`);
      context.print(found, showTags);
    },
  },
  {
    words: ["tags", "set"],
    positionals: [...RESOURCE, "[key=value...]"],
    summary: "Replace all tags of a resource; without any, it is left with none.",
    options: [ETAG_OPTION, ...SCOPE_OPTIONS],
    run: (context) => write(context, "PUT", parseTags(context.positionals.slice(2), false)),
  },
  {
    words: ["tags", "patch"],
    positionals: [...RESOURCE, "<key=value|key-...>"],
    summary: "Add or change single tags of a resource; `key-` removes one.",
    options: [ETAG_OPTION, ...SCOPE_OPTIONS],
    run: (context) => write(context, "PATCH", parseTags(context.positionals.slice(2), true)),
  },
  {
    words: ["tags", "rm"],
    positionals: RESOURCE,
    summary: "Delete the tags of a resource.",
    options: [ETAG_OPTION, ...SCOPE_OPTIONS],
    async run(context) {
      await send(context, "DELETE", resourceOf(context));
      const { resource_type: type, resource_id: id } = resourceOf(context);
      context.print({ type, id, deleted: true }, () => `deleted the tags of ${type} ${id}\n`);
    },
  },
  {
    words: ["tags", "find"],
    positionals: ["[filter...]"],
    summary: "List resources that match every filter: key, key=a,b, !key, key!=a.",
    options: [
      {
        name: "type",
        value: "TYPE",
        summary: "only resources of this type; repeat for several",
        isRepeatable: true,
      },
      { name: "name", value: "TEXT", summary: "only resources whose name contains this" },
      { name: "ignore-case", summary: "match keys and values regardless of case" },
      { name: "count", summary: "only say how many there are" },
      ...SCOPE_OPTIONS,
    ],
    run: find,
  },
  {
    words: ["tags", "keys"],
    summary: "List the tag keys in use, with how many resources carry them.",
    options: [prefixOption("keys"), ...SCOPE_OPTIONS],
    async run(context) {
      const keys = await listWords<{ key: string; count: number }>(context, "keys", {});
      context.print(keys, (rows) =>
        table(
          ["key", "resources"],
          rows.map((row) => [row.key, String(row.count)]),
          "no tags",
        ),
      );
    },
  },
  {
    words: ["tags", "values"],
    positionals: ["<key>"],
    summary: "List the values of a tag key, with how many resources carry them.",
    options: [
      prefixOption("values"),
      { name: "type", value: "TYPE", summary: "only values on resources of this type" },
      ...SCOPE_OPTIONS,
    ],
    async run(context) {
      const type = context.option("type");
      const path = `values/${encodeURIComponent(context.positionals[0] ?? "")}`;
      const values = await listWords<{ value: string; count: number }>(
        context,
        path,
        type === undefined ? {} : { type },
      );
      context.print(values, (rows) =>
        table(
          ["value", "resources"],
          rows.map((row) => [row.value, String(row.count)]),
          "no values",
        ),
      );
    },
  },
];

async function write(
  context: CommandContext,
  method: "PUT" | "PATCH",
  tags: Record<string, string | null>,
): Promise<void> {
  const { result } = await send(context, method, { ...resourceOf(context), tags });
  context.print(result as ShownResource, showTags);
}

/** With `If-Match` where asked for. */
async function send(context: CommandContext, method: string, body: object): Promise<Envelope> {
  const client = await context.client();
  const etag = context.option("if-match");
  return client.send(method, tagsPath(context), body, etag === undefined ? {} : { "if-match": etag });
}

async function find(context: CommandContext): Promise<void> {
  const client = await context.client();
  const query = new URLSearchParams(context.positionals.map((filter): [string, string] => ["tag", filter]));
  for (const type of context.options("type")) query.append("type", type);
  const name = context.option("name");
  if (name !== undefined) query.set("name", name);
  if (context.hasSwitch("ignore-case")) query.set("case_insensitive", "true");
  const path = `${tagsPath(context)}/resources`;
  if (context.hasSwitch("count")) {
    query.set("total", "exact");
    const { result_info: info } = await client.send("GET", `${path}?${query.toString()}`);
    context.print({ count: info?.total_count ?? 0 }, ({ count }) => `${count}\n`);
    return;
  }
  const resources = await client.list<ShownResource>(`${path}?${query.toString()}`);
  context.print(resources, (rows) =>
    table(
      ["type", "id", "name", "tags"],
      rows.map((row) => [row.type, row.id, row.name, inOneLine(row.tags)]),
      "nothing matches",
    ),
  );
}

async function listWords<T>(
  context: CommandContext,
  path: string,
  parameters: Record<string, string>,
): Promise<T[]> {
  const prefix = context.option("prefix");
  const query = new URLSearchParams({
    ...parameters,
    counts: "true",
    ...(prefix === undefined ? {} : { prefix }),
  });
  const client = await context.client();
  return client.list<T>(`${tagsPath(context)}/${path}?${query.toString()}`);
}

function parseTags(words: readonly string[], mayRemove: boolean): Record<string, string | null> {
  // A map first: `__proto__` is a possible key, and `fromEntries` makes it an ordinary member.
  const tags = new Map<string, string | null>();
  for (const word of words) {
    const equals = word.indexOf("=");
    if (equals > 0) tags.set(word.slice(0, equals), word.slice(equals + 1));
    else if (mayRemove && equals === -1 && word.endsWith("-") && word.length > 1)
      tags.set(word.slice(0, -1), null);
    else throw new UsageError(`expected ${mayRemove ? "key=value or key-" : "key=value"}, found "${word}"`);
  }
  return Object.fromEntries(tags);
}

function prefixOption(what: string): CommandOption {
  return { name: "prefix", value: "TEXT", summary: `only ${what} that begin with this` };
}

function resourceOf(context: CommandContext): { resource_type: string; resource_id: string } {
  return { resource_type: context.positionals[0] ?? "", resource_id: context.positionals[1] ?? "" };
}

function showTags(resource: ShownResource): string {
  return table(["key", "value"], Object.entries(resource.tags), "no tags");
}

function inOneLine(tags: Readonly<Record<string, string>>): string {
  return Object.entries(tags)
    .map(([key, value]) => (value === "" ? key : `${key}=${value}`))
    .join(" ");
}

function tagsPath(context: CommandContext): string {
  return `/accounts/${encodeURIComponent(context.option("account") ?? "default")}/tags`;
}
