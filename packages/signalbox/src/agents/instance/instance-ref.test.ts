import { expect, it } from "vitest";
import { databaseName } from "./instance-ref.ts";

it("instances of the account default keep the database names from before there were other accounts", () => {
  expect(databaseName({ account: "default", agent: "a", name: "n" })).toBe("a\0n");
});

it("instances of different accounts never have the same database name", () => {
  const names = [
    { account: "default", agent: "x", name: "y\0z" },
    { account: "x", agent: "y", name: "z" },
    { account: "x", agent: "y", name: "" },
    { account: "y", agent: "x", name: "z" },
  ].map(databaseName);
  expect(new Set(names).size).toBe(names.length);
});
