import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeReversible, fold, toInstanceName } from "./entity-names.ts";

describe("a plain instance name", () => {
  it.each([
    ["Acme/Widgets", "acme-widgets"],
    ["octo-org/Hello-World.js", "octo-org-hello-world.js"],
    ["cus_123", "cus_123"],
    ["my shop!.myshopify.com", "my-shop-.myshopify.com"],
    ["+15550001", "-15550001"],
    ["Zürich", "zürich"],
    ["Zu\u0308rich", "zürich"],
    ["  padded  ", "padded"],
    ["x".repeat(256), "x".repeat(256)],
    ["../../etc/passwd", "..-..-etc-passwd"],
  ])("of %s is %s", (entity, name) => expect(toInstanceName(entity, "plain")).toBe(name));

  it.each(["", "   ", ".", "..", "undefined", "null", "NULL", "x".repeat(257)])(
    "of %j does not exist",
    (entity) => expect(toInstanceName(entity, "plain")).toBeNull(),
  );

  it("has only letters, digits, _, . and -, and is its own plain name", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 300 }), (entity) => {
        const name = toInstanceName(entity, "plain");
        if (name === null) return;
        expect(name).toMatch(/^[\p{L}\p{M}\p{N}_.-]+$/u);
        expect(toInstanceName(name, "plain")).toBe(name);
      }),
    );
  });
});

describe("a reversible instance name", () => {
  it("differs for entities with the same plain name", () => {
    expect(toInstanceName("a/b-c", "reversible")).toBe("a_2fb-c");
    expect(toInstanceName("a-b/c", "reversible")).toBe("a-b_2fc");
  });

  it("decodes to the lower-case entity", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", minLength: 1, maxLength: 60 }), (entity) => {
        const name = toInstanceName(entity, "reversible");
        if (name === null) return;
        expect(name).toMatch(/^[a-z0-9._-]+$/);
        expect(decodeReversible(name)).toBe(fold(entity));
      }),
    );
  });
});
