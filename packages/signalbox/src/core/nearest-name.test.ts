import { expect, it } from "vitest";
import { nearestName } from "./nearest-name.ts";

it("suggests a close name and stays silent otherwise", () => {
  const known = ["port", "host", "data-dir", "database-url"];
  expect(nearestName("prot", known)).toBe("port");
  expect(nearestName("databaseurl", known)).toBe("database-url");
  expect(nearestName("DATA-DIR", known)).toBe("data-dir");
  expect(nearestName("zzzzzz", known)).toBeUndefined();
  expect(nearestName("x", [])).toBeUndefined();
});
