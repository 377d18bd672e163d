import { expect, it } from "vitest";
import { commandHelp, overview } from "./help.ts";
import { serve } from "./serve.ts";

it("lists commands with their arguments, aligned", () => {
  const command = {
    words: ["tags", "get"],
    positionals: ["<id>"],
    summary: "Show.",
    options: [],
    run: serve.run,
  };
  expect(overview([serve, command])).toMatch(
    /\n {2}serve +Run the service\..*\n {2}tags get <id> {2}Show\.\n/,
  );
});

it("lists all options of a command", () => {
  const help = commandHelp(serve);
  expect(help).toContain("Usage: signalbox serve [options]\n");
  for (const option of ["--port PORT", "--no-reexec", "--env-file FILE", "--json"])
    expect(help).toContain(`\n  ${option} `);
});
