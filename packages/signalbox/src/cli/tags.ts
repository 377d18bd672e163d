/** `signalbox tags …`: read, change and find tags. */
import type { ResourceName, TaggedResource } from "@signalbox/client";
import { type Command, type CommandContext, type CommandOption, UsageError } from "./command.ts";
import { ACCOUNT_OPTION, CLIENT_OPTIONS } from "./options.ts";
import { table } from "./table.ts";

const SCOPE_OPTIONS: readonly CommandOption[] = [ACCOUNT_OPTION, ...CLIENT_OPTIONS];
const ETAG_OPTION: CommandOption = {
  name: "if-match",
  value: "ETAG",
  summary: "fail unless the tags of the resource have this etag",
};
const RESOURCE = ["<type>", "<id>"];

export const tagCommands: readonly Command[] = [
  {
    words: ["tags", "get"],
    positionals: RESOURCE,
    summary: "Show the tags of a resource.",
    options: SCOPE_OPTIONS,
    async run(context) {
      const { tags } = await context.account();
      context.print(await tags.get(resourceOf(context)), showTags);
    },
  },
  {
    words: ["tags", "set"],
    positionals: [...RESOURCE, "[key=value...]"],
    summary: "Replace all tags of a resource; without arguments, remove them.",
    options: [ETAG_OPTION, ...SCOPE_OPTIONS],
    async run(context) {
      const change = { ...resourceOf(context), tags: parseTags(context.positionals.slice(2)) };
      const { tags } = await context.account();
      context.print(await tags.set(change, conditionOf(context)), showTags);
    },
  },
  {
    words: ["tags", "patch"],
    positionals: [...RESOURCE, "<key=value|key-...>"],
    summary: "Add or change tags of a resource; `key-` removes a tag.",
    options: [ETAG_OPTION, ...SCOPE_OPTIONS],
    async run(context) {
      const change = { ...resourceOf(context), tags: parseTagChanges(context.positionals.slice(2)) };
      const { tags } = await context.account();
      context.print(await tags.patch(change, conditionOf(context)), showTags);
    },
  },
  {
    words: ["tags", "delete"],
    positionals: RESOURCE,
    summary: "Delete the tags of a resource.",
    options: [ETAG_OPTION, ...SCOPE_OPTIONS],
    async run(context) {
      const { tags } = await context.account();
      await tags.delete(resourceOf(context), conditionOf(context));
      const { resource_type: type, resource_id: id } = resourceOf(context);
      context.print({ type, id, deleted: true }, () => `deleted the tags of ${type} ${id}\n`);
    },
  },
  {
    words: ["tags", "find"],
    positionals: ["[filter...]"],
    summary: "List resources that match all filters: key, key=a,b, !key, key!=a.",
    options: [
      {
        name: "type",
        value: "TYPE",
        summary: "only resources of this type (repeatable)",
        isRepeatable: true,
      },
      { name: "name", value: "TEXT", summary: "only resources whose name contains this text" },
      { name: "ignore-case", summary: "ignore case in keys and values" },
      { name: "count", summary: "print only the number of resources" },
      ...SCOPE_OPTIONS,
    ],
    run: find,
  },
  {
    words: ["tags", "keys"],
    summary: "List tag keys in use with the number of resources that have them.",
    options: [prefixOption("keys"), ...SCOPE_OPTIONS],
    async run(context) {
      const { tags } = await context.account();
      const keys = await tags.keys({ prefix: context.option("prefix") }).all();
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
    summary: "List the values of a tag key with the number of resources that have them.",
    options: [
      prefixOption("values"),
      { name: "type", value: "TYPE", summary: "only values on resources of this type" },
      ...SCOPE_OPTIONS,
    ],
    async run(context) {
      const { tags } = await context.account();
      const query = { prefix: context.option("prefix"), type: context.option("type") };
      const values = await tags.values(context.positionals[0] ?? "", query).all();
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

async function find(context: CommandContext): Promise<void> {
  const { tags } = await context.account();
  const query = {
    tag: context.positionals,
    type: context.options("type"),
    name: context.option("name"),
    case_insensitive: context.hasSwitch("ignore-case") || undefined,
  };
  if (context.hasSwitch("count")) {
    context.print({ count: await tags.countResources(query) }, ({ count }) => `${count}\n`);
    return;
  }
  context.print(await tags.resources(query).all(), (rows) =>
    table(
      ["type", "id", "name", "tags"],
      rows.map((row) => [row.type, row.id, row.name, inOneLine(row.tags)]),
      "no matching resources",
    ),
  );
}

function parseTags(words: readonly string[]): Record<string, string> {
  return Object.fromEntries(words.map((word) => parseTag(word) ?? refuse(word, "key=value")));
}

export function parseTagChanges(words: readonly string[]): Record<string, string | null> {
  return Object.fromEntries(
    words.map((word): [string, string | null] => {
      const isRemoval = !word.includes("=") && word.endsWith("-") && word.length > 1;
      if (isRemoval) return [word.slice(0, -1), null];
      return parseTag(word) ?? refuse(word, "key=value or key-");
    }),
  );
}

function parseTag(word: string): [string, string] | undefined {
  const equals = word.indexOf("=");
  return equals > 0 ? [word.slice(0, equals), word.slice(equals + 1)] : undefined;
}

function refuse(word: string, expected: string): never {
  throw new UsageError(`expected ${expected}, found "${word}"`);
}

function prefixOption(what: string): CommandOption {
  return { name: "prefix", value: "TEXT", summary: `only ${what} with this prefix` };
}

function conditionOf(context: CommandContext): { etag: string | undefined } {
  return { etag: context.option("if-match") };
}

function resourceOf(context: CommandContext): ResourceName {
  return { resource_type: context.positionals[0] ?? "", resource_id: context.positionals[1] ?? "" };
}

function showTags(resource: TaggedResource): string {
  return table(["key", "value"], Object.entries(resource.tags), "no tags");
}

function inOneLine(tags: Readonly<Record<string, string>>): string {
  return Object.entries(tags)
    .map(([key, value]) => (value === "" ? key : `${key}=${value}`))
    .join(" ");
}
