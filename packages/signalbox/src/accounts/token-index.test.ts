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
  "refuses a token from its expiry time on, and after the index was cleared, on connection %j",
  (connection) => {
    const index = new TokenIndex();
    const text = generateToken();
    index.add(tokenOf("one", text, 100));
    expect(index.findByText(text, 99, connection)?.id).toBe("one");
    expect(index.findByText(text, 100, connection)).toBeUndefined();
    index.clear();
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
