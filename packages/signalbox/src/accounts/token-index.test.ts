import { generateToken } from "@signalbox/protocol";
import { expect, it } from "vitest";
import type { Token } from "./token.ts";
import { hashToken, TokenIndex } from "./token-index.ts";

function tokenOf(id: string, text: string, expiresAt: number | null = null): Token {
  return {
    id,
    accountId: "default",
    name: "",
    hash: hashToken(text),
    suffix: text.slice(-4),
    permissions: new Set(),
    gatewayId: null,
    createdAt: 0,
    expiresAt,
    isDisabled: false,
    previous: null,
    policy: null,
  };
}

it.each([null, {}])("finds a token until it is removed, on connection %j", (connection) => {
  const index = new TokenIndex();
  const text = generateToken();
  index.add(tokenOf("one", text));
  expect(index.findByText(text, 1, connection)?.id).toBe("one");
  expect(index.findByText(text, 2, connection)?.id).toBe("one");
  expect(index.lastUse("one")).toBe(2);
  index.remove("one");
  expect(index.findByText(text, 3, connection)).toBeUndefined();
});

it.each([null, {}])("distinguishes tokens, on connection %j", (connection) => {
  const index = new TokenIndex();
  const texts = [generateToken(), generateToken()];
  index.add(tokenOf("one", texts[0] ?? ""));
  expect(index.findByText(texts[0] ?? "", 1, connection)?.id).toBe("one");
  expect(index.findByText(texts[1] ?? "", 1, connection)).toBeUndefined();
  index.add(tokenOf("two", texts[1] ?? ""));
  expect(index.findByText(texts[1] ?? "", 1, connection)?.id).toBe("two");
  expect(index.findByText(texts[0] ?? "", 1, connection)?.id).toBe("one");
});

it.each([null, {}])(
  "refuses a token from its expiry time on, and after it was removed, on connection %j",
  (connection) => {
    const index = new TokenIndex();
    const text = generateToken();
    index.add(tokenOf("one", text, 100));
    expect(index.findByText(text, 99, connection)?.id).toBe("one");
    expect(index.findByText(text, 100, connection)).toBeUndefined();
    index.remove("one");
    expect(index.findByText(text, 99, connection)).toBeUndefined();
  },
);

it("restores uses that could not be stored, except those of tokens used again or removed", () => {
  const index = new TokenIndex();
  const texts = [generateToken(), generateToken(), generateToken()];
  texts.forEach((text, i) => index.add(tokenOf(String(i), text)));
  for (const text of texts) index.findByText(text, 1);
  const uses = index.takeUses();
  index.findByText(texts[1] ?? "", 5);
  index.remove("2");
  index.putBackUses(uses);
  expect(index.takeUses().toSorted((a, b) => a.time - b.time)).toEqual([
    { id: "0", time: 1 },
    { id: "1", time: 5 },
  ]);
  expect(index.takeUses()).toEqual([]);
});

it.each([null, {}])(
  "accepts both texts of a rotated token during the grace, on connection %j",
  (connection) => {
    const index = new TokenIndex();
    const [old, next] = [generateToken(), generateToken()];
    index.add(tokenOf("one", old));
    expect(index.findByText(old, 1, connection)?.id).toBe("one");
    index.add({ ...tokenOf("one", next), previous: { hash: hashToken(old), endsAt: 100 } });
    expect(index.size).toBe(1);
    for (const text of [old, next, old]) expect(index.findByText(text, 99, connection)?.id).toBe("one");
    expect(index.findByText(old, 100, connection)).toBeUndefined();
    expect(index.findByText(next, 100, connection)?.id).toBe("one");
    index.remove("one");
    for (const text of [old, next]) expect(index.findByText(text, 99, connection)).toBeUndefined();
  },
);

it.each([null, {}])("replaces a token, and refuses a disabled one, on connection %j", (connection) => {
  const index = new TokenIndex();
  const text = generateToken();
  index.add(tokenOf("one", text));
  expect(index.findByText(text, 5, connection)?.name).toBe("");
  index.add({ ...tokenOf("one", text), name: "changed" });
  expect(index.findByText(text, 6, connection)?.name).toBe("changed");
  index.add({ ...tokenOf("one", text), isDisabled: true });
  expect(index.findByText(text, 7, connection)).toBeUndefined();
  expect(index.takeUses()).toEqual([{ id: "one", time: 6 }]);
});
