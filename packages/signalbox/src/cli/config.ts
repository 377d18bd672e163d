/** `signalbox config`: the settings in force, with secrets hidden, and where each of them comes from. */
import type { Command } from "./command.ts";
import { SERVE_OPTIONS } from "./options.ts";
import { table } from "./table.ts";

export const configCommand: Command = {
  words: ["config"],
  summary: "Print the settings that `serve` would use, with secrets hidden, and where each comes from.",
  options: [{ name: "changed", summary: "leave out defaults" }, ...SERVE_OPTIONS],
  async run(context) {
    // Loaded for this command only.
    const { settingsInForce } = await import("./settings-in-force.ts");
    const settings = await settingsInForce(context);
    const shown = context.hasSwitch("changed")
      ? settings.filter(({ origin }) => origin !== "default")
      : settings;
    context.print(shown, (rows) =>
      table(
        ["setting", "value", "origin"],
        rows.map(({ name, value, origin }) => [name, toText(value), origin]),
        "all settings have their defaults",
      ),
    );
  },
};

function toText(value: unknown): string {
  if (value === null || value === undefined) return "-";
  return typeof value === "string" ? value : JSON.stringify(value);
}
