/** `signalbox tags history` and `signalbox tags bulk` */
import type { BulkItem, BulkResult, TagChange } from "@signalbox/client";
import { type Command, type CommandContext, UsageError } from "./command.ts";
import { ACCOUNT_OPTION, CLIENT_OPTIONS } from "./options.ts";
import { readSource } from "./read-source.ts";
import { table } from "./table.ts";

/** The most that the management interface takes in one request. */
const MAX_ITEMS = 1000;
const DEFAULT_ROWS = 50;

export const tagWorkCommands: readonly Command[] = [
  {
    words: ["tags", "history"],
    positionals: ["<type>", "<id>"],
    summary: "List the changes of a resource's tags, newest first.",
    options: [
      { name: "limit", value: "N", summary: `number of changes (default ${DEFAULT_ROWS})` },
      ACCOUNT_OPTION,
      ...CLIENT_OPTIONS,
    ],
    async run(context) {
      const limit = context.option("limit") ?? String(DEFAULT_ROWS);
      if (!/^[1-9]\d{0,5}$/.test(limit))
        throw new UsageError(`--limit: expected a whole number above 0, found "${limit}"`);
      const [type = "", id = ""] = context.positionals;
      const { tags } = await context.account();
      const resource = { resource_type: type, resource_id: id };
      const changes = await tags.history(resource).all(Number(limit));
      context.print(changes, (rows) =>
        table(
          ["time", "action", "actor", "change"],
          rows.map((row) => [row.changed_at, row.action, row.actor, differenceOf(row)]),
          "no changes",
        ),
      );
    },
  },
  {
    words: ["tags", "bulk"],
    positionals: ["<file>"],
    summary:
      'Apply changes to many resources. The file is a JSON list, or has one object per line: {"resource_type","resource_id","operation":"set|patch|delete","tags":{…}}. The exit code is 1 if a change fails.',
    options: [
      { name: "dry-run", summary: "show the results, and change nothing" },
      ACCOUNT_OPTION,
      ...CLIENT_OPTIONS,
    ],
    async run(context) {
      const items = parseItems(await readSource(context, context.positionals[0] ?? ""));
      const results = await applyAll(context, items);
      context.print(results, (rows) => showResults(rows, items));
      return results.every(({ success }) => success) ? 0 : 1;
    },
  },
];

/** Changes are independent: a failed one does not undo the others. */
async function applyAll(context: CommandContext, items: readonly BulkItem[]): Promise<BulkResult[]> {
  const { tags } = await context.account();
  const dryRun = context.hasSwitch("dry-run");
  const results: BulkResult[] = [];
  for (let at = 0; at < items.length; at += MAX_ITEMS) {
    results.push(...(await tags.bulk(items.slice(at, at + MAX_ITEMS), { dryRun })));
  }
  return results;
}

/** The server validates the members. */
function parseItems(text: string): BulkItem[] {
  const isList = text.trimStart().startsWith("[");
  const lines = isList ? [text] : text.split("\n");
  const items = lines.flatMap((line, i): unknown[] => {
    if (line.trim() === "") return [];
    try {
      const value = JSON.parse(line) as unknown;
      return isList ? (value as unknown[]) : [value];
    } catch (cause) {
      throw new UsageError(isList ? "the file is not valid JSON" : `line ${i + 1} is not valid JSON`, {
        cause,
      });
    }
  });
  if (items.length === 0) throw new UsageError("the file has no change");
  const wrong = items.findIndex((item) => typeof item !== "object" || item === null || Array.isArray(item));
  if (wrong !== -1) throw new UsageError(`change ${wrong + 1} is not a JSON object`);
  return items as BulkItem[];
}

function showResults(results: readonly BulkResult[], items: readonly BulkItem[]): string {
  return table(
    ["type", "id", "result"],
    results.map(({ success, errors }, i) => [
      items[i]?.resource_type ?? "",
      items[i]?.resource_id ?? "",
      success ? "ok" : errors.map(({ code, message }) => `${message} (code ${code})`).join("; "),
    ]),
    "no changes",
  );
}

/** `+key=value -key key=old→new` */
function differenceOf({ before, after }: TagChange): string {
  const [old, now] = [before ?? {}, after ?? {}];
  const keys = [...new Set([...Object.keys(old), ...Object.keys(now)])];
  return keys
    .flatMap((key) => {
      if (!Object.hasOwn(now, key)) return [`-${key}`];
      if (!Object.hasOwn(old, key)) return [`+${key}=${now[key]}`];
      return old[key] === now[key] ? [] : [`${key}=${old[key]}→${now[key]}`];
    })
    .join(" ");
}
