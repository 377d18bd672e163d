import { describe, expect, it } from "vitest";
import { mergeEdit } from "./merge-edit.ts";

interface Rule {
  readonly limit: number;
  readonly models?: readonly string[];
}

const merge = (before: Rule, edited: Rule, now: Rule | undefined) => mergeEdit(before, edited, now, "limit");

describe("an edit of something that changed meanwhile", () => {
  it("keeps members that were not edited", () => {
    expect(merge({ limit: 5 }, { limit: 5, models: ["a"] }, { limit: 8 })).toEqual({
      limit: 8,
      models: ["a"],
    });
    expect(merge({ limit: 5, models: ["a"] }, { limit: 5 }, { limit: 8, models: ["a"] })).toEqual({
      limit: 8,
    });
  });

  it("is refused if the edited member was changed to another value, or all was removed", () => {
    expect(() => merge({ limit: 5 }, { limit: 6 }, { limit: 8 })).toThrow(/limit is now 8/);
    expect(() => merge({ limit: 5 }, { limit: 6 }, undefined)).toThrow(/removed/);
    expect(merge({ limit: 5 }, { limit: 8 }, { limit: 8 })).toEqual({ limit: 8 });
  });
});
