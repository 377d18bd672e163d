import { expect, it } from "vitest";
import { contentTypeOf } from "./content-types.ts";

it("only endings of the table have a type", () => {
  expect(contentTypeOf("/App.JS")).toBe("text/javascript; charset=utf-8");
  for (const path of ["/x.constructor", "/x.__proto__", "/x.toString", "/x.unknown", "/x."]) {
    expect(contentTypeOf(path), path).toBeNull();
  }
});
