import { expect, it } from "vitest";
import { growingCache } from "./growing-cache.ts";

it("keeps as many entries as it may, those that were used last", () => {
  const cache = growingCache<{ readonly of: string }>(2);
  for (const name of ["a", "b"]) cache.set(name, { of: name });
  cache.get("a");
  cache.set("c", { of: "c" });
  expect(["a", "b", "c"].map((key) => cache.get(key)?.of)).toEqual(["a", undefined, "c"]);
});
