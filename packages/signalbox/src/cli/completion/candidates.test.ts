import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { COMMANDS } from "../command-list.ts";
import { completeWords } from "./candidates.ts";

const wordsOf = (...typed: readonly string[]) =>
  completeWords(typed, COMMANDS).candidates.map(([word]) => word);

describe("completeWords", () => {
  it.each<[readonly string[], readonly string[]]>([
    [["gatew"], ["gateway"]],
    [["__"], []],
    [
      ["help", "gateway", "s"],
      ["show", "set"],
    ],
    [
      ["gateways", "s"],
      ["show", "set"],
    ],
    [["gateway", "set", "x", "--rate-t"], ["--rate-technique"]],
    [
      ["gateway", "set", "x", "--rate-technique", ""],
      ["fixed", "sliding"],
    ],
    [["gateway", "set", "x", "--rate-technique=s"], ["--rate-technique=sliding"]],
    [["gateway", "set", "x", "--logs", "on", "--lo"], ["--log-level"]],
    [["token", "create", "x", "--model", "a", "--mod"], ["--model"]],
    [
      ["gateway", "set", "x", "--output", ""],
      ["table", "json"],
    ],
    [["completion", "z"], ["zsh"]],
    [["completion", "zsh", ""], []],
    [["token", "r"], ["rotate"]],
    [["tags", "patch", "worker", "w", "--", "--"], []],
    [["nothing", ""], []],
  ])("%j is followed by %j", (typed, expected) => {
    expect(wordsOf(...typed)).toEqual(expected);
  });

  it("an empty line is followed by every group, but no hidden command", () => {
    const words = wordsOf("");
    expect(words).toEqual(expect.arrayContaining(["serve", "gateway", "tags", "help", "--version"]));
    expect(words.filter((word) => word.startsWith("_"))).toEqual([]);
  });

  it.each<[readonly string[], object]>([
    [["gateway", "show", "d"], { names: "gateway", prefix: "d" }],
    [["gateway", "create", ""], { names: undefined }],
    [["logs", "list", "--gateway=d"], { names: "gateway", prefix: "d", before: "--gateway=" }],
    [["agents", "show", ""], { names: "agent" }],
    [["agents", "show", "counter", "a"], { names: "instance", prefix: "a" }],
    [["agents", "call", "--account", "team", "counter", "x"], { names: "instance" }],
    [["agents", "call", "counter", "x", "add", "y"], { names: undefined }],
    [["webhooks", "send", ""], { names: "source" }],
    [["webhooks", "deliveries", "--type", ""], { names: undefined }],
    [["tags", "find", "--type", ""], { names: "tag-type" }],
    [["tags", "get", ""], { names: "tag-type" }],
    [["tags", "get", "worker", ""], { names: undefined }],
    [["token", "create", "x", "--permission", ""], { names: "permission" }],
    [["serve", "--env-file", ""], { hasFiles: true }],
    [["alerts", "create", ""], { hasFiles: true }],
  ])("%j asks for %j", (typed, expected) => {
    expect(completeWords(typed, COMMANDS)).toMatchObject(expected);
  });

  it("completes any line, with words that begin as typed", () => {
    const word = fc.oneof(
      fc.string(),
      fc.constantFrom("gateway", "set", "--output", "--", "--json", "tags", "=", "-", "help", "--output="),
    );
    fc.assert(
      fc.property(fc.array(word, { minLength: 1, maxLength: 6 }), (typed) => {
        const { candidates } = completeWords(typed, COMMANDS);
        for (const [candidate] of candidates) expect(candidate.startsWith(typed.at(-1) ?? "")).toBe(true);
      }),
    );
  });
});
