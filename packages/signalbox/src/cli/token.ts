/** `signalbox token …` */
import type { Permission } from "@signalbox/protocol";
import { type Command, UsageError } from "./command.ts";
import { ACCOUNT_OPTION, CLIENT_OPTIONS } from "./options.ts";
import { table } from "./table.ts";

export const tokenCommands: readonly Command[] = [
  {
    words: ["token", "create"],
    positionals: ["<name>"],
    summary: "Create a token and print it. It cannot be shown again.",
    options: [
      {
        name: "permission",
        value: "NAME",
        summary: "permission, e.g. tags.read (repeatable; edit does not include read)",
        isRepeatable: true,
      },
      {
        name: "gateway",
        value: "ID",
        summary: "bind the token to a gateway; it can then have gateway.* and tokens.edit",
      },
      { name: "expires-at", value: "TIME", summary: "ISO 8601 time at which the token expires" },
      ACCOUNT_OPTION,
      ...CLIENT_OPTIONS,
    ],
    async run(context) {
      const permissions = context.options("permission");
      if (permissions.length === 0)
        throw new UsageError("give at least one --permission, e.g. --permission tags.read");
      const { tokens } = await context.account();
      const token = await tokens.create({
        name: context.positionals[0] ?? "",
        // The service validates the names.
        permissions: permissions as Permission[],
        gateway_id: context.option("gateway"),
        expires_at: context.option("expires-at"),
      });
      context.print(token, ({ token: text }) => `${text}\n`);
    },
  },
  {
    words: ["token", "list"],
    summary: "List the tokens of an account, without their secret text.",
    options: [ACCOUNT_OPTION, ...CLIENT_OPTIONS],
    async run(context) {
      const tokens = await (await context.account()).tokens.list().all();
      context.print(tokens, (rows) =>
        table(
          ["id", "name", "ends in", "permissions", "gateway", "expires", "last used"],
          rows.map((row) => [
            row.id,
            row.name,
            row.last_four,
            row.permissions.join(","),
            row.gateway_id ?? "-",
            row.expires_at ?? "never",
            row.last_used_at ?? "never",
          ]),
          "no tokens",
        ),
      );
    },
  },
  {
    words: ["token", "revoke"],
    positionals: ["<id>"],
    summary: "Revoke a token.",
    options: [ACCOUNT_OPTION, ...CLIENT_OPTIONS],
    async run(context) {
      const id = context.positionals[0] ?? "";
      const result = await (await context.account()).tokens.revoke(id);
      context.print(result, () => `revoked ${id}\n`);
    },
  },
];
