import { expect, it } from "vitest";
import { nearestName } from "./nearest-name.ts";

it("returns a close name, or undefined", () => {
  const known = ["port", "host", "data-dir", "database-url"];
  expect(nearestName("prot", known)).toBe("port");
  expect(nearestName("databaseurl", known)).toBe("database-url");
  expect(nearestName("DATA-DIR", known)).toBe("data-dir");
  expect(nearestName("zzzzzz", known)).toBeUndefined();
  expect(nearestName("x", [])).toBeUndefined();
});
