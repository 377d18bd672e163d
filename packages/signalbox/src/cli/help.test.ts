import { expect, it } from "vitest";
import { commandHelp, firstSentence, groupHelp, overview } from "./help.ts";
import { COMMANDS } from "./command-list.ts";
import { COMMON_OPTIONS } from "./options.ts";
import { serve } from "./serve.ts";

const command = {
  words: ["tags", "get"],
  positionals: ["<id>"],
  summary: "Show. More.",
  options: [],
  run: serve.run,
};

it("lists groups by task, one line each, or all commands", () => {
  const hidden = { ...command, words: ["secret"], isHidden: true };
  const unlisted = { ...command, words: ["novel", "thing"] };
  const short = overview([serve, command, hidden, unlisted]);
  expect(short).toMatch(/\nStart\n {2}serve +Run the service\.\n/);
  expect(short).toMatch(/\nTags\n {2}tags +Tags of .*\(get\)\n/);
  expect(short).toMatch(/\nOther\n {2}novel +\(thing\)\n/);
  expect(short).not.toContain("secret");
  expect(overview([serve, command], true)).toMatch(/\n {2}tags get <id> {2}Show\.\n/);
});

it("lists the commands of a group", () => {
  expect(groupHelp("tags", [serve, command])).toMatch(
    /\nUsage: signalbox tags <command> \[options\]\n\n {2}tags get <id> {2}Show\.\n/,
  );
});

it("lists all options of a command", () => {
  const help = commandHelp(serve);
  expect(help).toContain("Usage: signalbox serve [options]\n");
  for (const option of ["--port PORT", "--no-reexec", "--env-file FILE", "--json"])
    expect(help).toContain(`\n  ${option} `);
});

it("no two commands have the same name, and no command has two options of one name", () => {
  const names = COMMANDS.map(({ words }) => words.join(" "));
  expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([]);
  for (const { words, options } of COMMANDS) {
    const all = [...options, ...COMMON_OPTIONS].map(({ name }) => name);
    expect([words, all.filter((name, i) => all.indexOf(name) !== i)]).toEqual([words, []]);
  }
});

it("every command deletes with the same verb, and its summary is a sentence", () => {
  for (const { words, summary } of COMMANDS) {
    expect(["rm", "remove", "destroy", "revoke"]).not.toContain(words.at(-1));
    expect(summary).toMatch(/^[A-Z].*\.$/s);
    expect(firstSentence(summary).length).toBeLessThan(160);
  }
});

it("lines of help fit a terminal, and a sentence with an example is not cut", () => {
  for (const line of overview(COMMANDS).split("\n")) expect(line.length).toBeLessThanOrEqual(110);
  expect(firstSentence("Print it, e.g. `source <(x)` in ~/.bashrc. More.")).toBe(
    "Print it, e.g. `source <(x)` in ~/.bashrc.",
  );
});
