import { describe, expect, it } from "vitest";
import { entityTag, requireMatch } from "./entity-tag.ts";

describe("If-Match", () => {
  const value = { rules: [{ id: "all", limit: 5 }] };
  const tag = entityTag(value);

  it("accepts the tag of the value, alone, in a list, or *", () => {
    expect(tag).toMatch(/^"[\w-]{22}"$/);
    for (const wanted of [undefined, tag, `"other", ${tag}`, tag.slice(1, -1), "*"]) {
      expect(() => requireMatch({ "if-match": wanted }, value)).not.toThrow();
    }
  });

  it("refuses every other tag, also a weak one", () => {
    for (const wanted of ["", '"other"', `W/${tag}`]) {
      expect(() => requireMatch({ "if-match": wanted }, value)).toThrow(
        expect.objectContaining({ id: "changed_meanwhile" }),
      );
    }
    expect(() => requireMatch({ "if-match": tag }, { rules: [{ id: "all", limit: 6 }] })).toThrow();
  });
});
