/** `signalbox account …` */
import type { Command } from "./command.ts";
import { CLIENT_OPTIONS } from "./options.ts";
import { table } from "./table.ts";

export const accountCommands: readonly Command[] = [
  {
    words: ["account", "create"],
    positionals: ["[id]"],
    summary: "Create an account.",
    options: [{ name: "name", value: "NAME", summary: "display name (default: the id)" }, ...CLIENT_OPTIONS],
    async run(context) {
      const client = await context.client();
      const account = await client.accounts.create({
        id: context.positionals[0],
        name: context.option("name"),
      });
      context.print(account, ({ id }) => `created account ${id}\n`);
    },
  },
  {
    words: ["account", "list"],
    summary: "List accounts.",
    options: CLIENT_OPTIONS,
    async run(context) {
      const accounts = await (await context.client()).accounts.list().all();
      context.print(accounts, (rows) =>
        table(
          ["id", "name", "created"],
          rows.map((row) => [row.id, row.name, row.created_at]),
          "no accounts",
        ),
      );
    },
  },
];
