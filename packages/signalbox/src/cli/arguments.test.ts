import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { findCommand, parseOptions, requirePositionals, withCommandFirst } from "./arguments.ts";
import { type Command, UsageError } from "./command.ts";

function command(words: string, positionals: readonly string[] = []): Command {
  return {
    words: words.split(" "),
    positionals,
    summary: "",
    options: [
      { name: "name", value: "TEXT", summary: "" },
      { name: "tag", value: "TEXT", summary: "", isRepeatable: true },
      { name: "all", summary: "" },
    ],
    run: async () => undefined,
  };
}

describe("findCommand", () => {
  const commands = [command("serve"), command("tags get"), command("tags")];

  it("prefers the longest match", () => {
    expect(findCommand(["tags", "get", "x"], commands)).toEqual({ command: commands[1], rest: ["x"] });
    expect(findCommand(["tags", "x"], commands)).toEqual({ command: commands[2], rest: ["x"] });
  });

  it("takes options before the command, with their values", () => {
    const all = (args: string) => withCommandFirst(args.split(" "), commands).join(" ");
    expect(all("--name x --all tags get y")).toBe("tags get y --name x --all");
    expect(all("--name=x --json tags get")).toBe("tags get --name=x --json");
    expect(all("--output json tags")).toBe("tags --output json");
    for (const same of ["tags get --name x", "--help", "--version", "--name", "-- tags", "--name x"])
      expect(all(same)).toBe(same);
  });

  it("suggests the nearest command", () => {
    expect(() => findCommand(["tags", "gett"], [command("tags get")])).toThrow(
      'unknown command "tags gett": did you mean "signalbox tags get"?',
    );
    expect(() => findCommand(["xyzzy", "--json"], commands)).toThrow(
      'unknown command "xyzzy": run "signalbox --help" for the list',
    );
  });
});

describe("parseOptions", () => {
  it("separates options, switches and positional arguments", () => {
    const parsed = parseOptions(command("x"), ["a", "--name", "n", "--tag=1", "--all", "b", "--tag", "2"]);
    expect(parsed.positionals).toEqual(["a", "b"]);
    expect(parsed.option("name")).toBe("n");
    expect(parsed.options("tag")).toEqual(["1", "2"]);
    expect([parsed.hasSwitch("all"), parsed.hasSwitch("json")]).toEqual([true, false]);
    expect([parsed.option("all"), parsed.options("name")]).toEqual([undefined, ["n"]]);
  });

  it("takes the last value of a repeated option, and arguments after -- as they are", () => {
    const values = fc.array(fc.string(), { minLength: 1 });
    fc.assert(
      fc.property(values, fc.array(fc.string()), (names, rest) => {
        const parsed = parseOptions(command("x"), [...names.map((name) => `--name=${name}`), "--", ...rest]);
        expect(parsed.option("name")).toBe(names.at(-1));
        expect(parsed.options("name")).toEqual(names);
        expect(parsed.positionals).toEqual(rest);
      }),
    );
  });

  it.each([
    [["--nam", "x"], "unknown option --nam, did you mean --name?"],
    [["--qqqqqqqq"], "unknown option --qqqqqqqq"],
    [["--name"], "Option '--name <value>' argument missing"],
    [["--all=1"], "Option '--all' does not take an argument"],
  ])("refuses %j in one line", (args, message) => {
    expect(() => parseOptions(command("x"), args)).toThrow(new UsageError(message));
  });

  it("parses any arguments or throws a UsageError of one line", () => {
    const word = fc.oneof(fc.string(), fc.constantFrom("--name", "--all", "--", "-x", "--tag=", "--json"));
    fc.assert(
      fc.property(fc.array(word), (args) => {
        try {
          parseOptions(command("x"), args);
        } catch (error) {
          expect(error).toBeInstanceOf(UsageError);
        }
      }),
    );
  });
});

describe("requirePositionals", () => {
  it.each([
    [["<id>"], [], '"x" needs <id>'],
    [["<id>"], ["a", "b"], '"x" takes no argument "b"'],
    [[], ["a"], '"x" takes no argument "a"'],
    [["<id>", "<name>"], ["a"], '"x" needs <name>'],
  ])("for %j refuses %j", (wanted, given, message) => {
    expect(() => requirePositionals(command("x", wanted), given)).toThrow(new UsageError(message));
  });

  it.each([
    [["[id]"], []],
    [["[id]"], ["a"]],
    [
      ["<id>", "[rest...]"],
      ["a", "b", "c"],
    ],
    [["<id>", "[rest...]"], ["a"]],
  ])("for %j accepts %j", (wanted, given) => {
    expect(() => requirePositionals(command("x", wanted), given)).not.toThrow();
  });
});
