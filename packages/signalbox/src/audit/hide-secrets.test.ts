import fc from "fast-check";
import { expect, it } from "vitest";
import { HIDDEN, SecretHider } from "./hide-secrets.ts";

const hide = (value: unknown) => JSON.parse(new SecretHider().hide(value)[0] ?? "") as unknown;

it("hides texts by the name of their member, but not references, numbers and plain keys", () => {
  expect(
    hide({
      secret: "s3cr3t",
      secret_id: "env:NAME",
      secret_preview: "…abcd",
      token: "text",
      token_id: "id",
      max_tokens: 5,
      tokens: [1, 2],
      key: "metadata.user",
      api_key: "abc",
      headers: { "x-any": "value", nested: ["a"] },
      previous_expires_at: "2026",
      authorization: "",
      receivers: [
        { type: "slack", url: "https://chat.example/hook" },
        { type: "webhook", url: "https://a.example" },
      ],
    }),
  ).toEqual({
    secret: HIDDEN,
    secret_id: "env:NAME",
    secret_preview: "…abcd",
    token: HIDDEN,
    token_id: "id",
    max_tokens: 5,
    tokens: [1, 2],
    key: "metadata.user",
    api_key: HIDDEN,
    headers: { "x-any": HIDDEN, nested: [HIDDEN] },
    previous_expires_at: "2026",
    authorization: "",
    receivers: [
      { type: "slack", url: HIDDEN },
      { type: "webhook", url: "https://a.example" },
    ],
  });
});

it("hides credentials by their form, also in names and in the middle of a text", () => {
  const hider = new SecretHider();
  for (const secret of [
    `sbx_${"a1".repeat(23)}`,
    "sk-proj-abcdefghijkl",
    "sk-ant-api03-abcdefghijkl",
    "AKIAIOSFODNN7EXAMPLE",
    "ghp_abcdefghijklmnop1234",
    "whsec_abcdefghijklmnop",
    "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl",
  ]) {
    expect(hider.hideText(`unknown value "${secret}" in body`), secret).not.toContain(secret);
    expect(hider.hide({ [secret]: 1 })[0], secret).not.toContain(secret);
  }
  expect(hider.hideText("Bearer abcdef123456")).toBe(`Bearer ${HIDDEN}`);
  expect(hider.hideText("https://user:pw@host/x?key=abc&a=1")).toBe(
    `https://${HIDDEN}@host/x?key=${HIDDEN}&a=1`,
  );
  expect(hider.hideText("an ordinary sentence_with_words and 12-34")).toContain("ordinary");
});

it("a secret that has a name is hidden everywhere in the entry, also before it and in later texts", () => {
  const property = fc.property(fc.string({ minLength: 6, maxLength: 40 }), (secret) => {
    fc.pre(!HIDDEN.includes(secret) && !"alias note secret".includes(secret));
    const hider = new SecretHider();
    const [text = ""] = hider.hide({ alias: `a ${secret} b`, secret, note: { deep: [secret] } });
    const parsed = JSON.parse(text) as { alias: string; secret: string; note: { deep: string[] } };
    expect(parsed.secret).toBe(HIDDEN);
    expect(parsed.alias).not.toContain(secret);
    expect(parsed.note.deep[0]).not.toContain(secret);
    expect(hider.hideText(`bad value ${secret}`)).not.toContain(secret);
  });
  fc.assert(property);
});

it("the search for anything suspicious misses nothing that the search of each member finds", () => {
  const piece = fc.constantFrom(
    "sk-",
    "abcdefghijklmn",
    "\n",
    "\t",
    '"',
    "Bearer ",
    "basic\t",
    "//",
    ":",
    "@",
    "?key=",
    ";code=",
    "key",
    "token",
    "api-key",
    "_",
    "-",
    "Token",
    "headers",
    "eyJabcdefgh",
    ".",
    "AKIA",
    "ABCDEF012345",
    "-----BEGIN PRIVATE KEY-----",
    "password",
    "cookie",
    "sbx_",
    "ghp_",
    "ya29.",
    "AIzaabcdefghijklmnopqrstu",
    "a",
    " ",
    "é",
    "\\",
  );
  const text = fc.array(piece, { maxLength: 5 }).map((pieces) => pieces.join(""));
  const value = fc.dictionary(text, fc.oneof(text, fc.array(text, { maxLength: 2 })), { maxKeys: 4 });
  const property = fc.property(value, (plain) => {
    // A value that is suspicious in any case makes the hider look at each member.
    const [quick] = new SecretHider().hide(plain);
    const [thorough] = new SecretHider().hide(plain, { secret: "" });
    expect(quick).toBe(thorough);
  });
  fc.assert(property, { numRuns: 2000 });
});

it("a secret that only a later value names is hidden in the earlier ones", () => {
  const texts = new SecretHider().hide({ note: "is plain-value ok" }, null, { secret: "plain-value" });
  expect(texts.join()).not.toContain("plain-value");
});

it("bounds what it returns, and hostile texts cost no more than their length", () => {
  const large = Object.fromEntries(Array.from({ length: 2000 }, (_, i) => [`m${i}`, "x".repeat(50)]));
  expect(hide(large)).toEqual({ truncated: true, bytes: expect.any(Number) as number });
  let deep: unknown = "end";
  for (let i = 0; i < 100; i++) deep = { deep };
  expect(JSON.stringify(hide(deep)).length).toBeLessThan(1000);
  for (let i = 0; i < 100_000; i++) deep = { deep };
  expect(JSON.stringify(hide(deep)).length).toBeLessThan(1000);
  // Without a bound, each text would be searched for each secret: minutes.
  const names = Array.from({ length: 20_000 }, (_, i) => `value-${i}`);
  const flood = new SecretHider();
  expect(flood.hide({ headers: names, notes: names }, null)[1]).toBe("null");
  expect(flood.hideMessage("bad value-19999")).toBe(HIDDEN);
  expect(flood.hideText("/accounts/default")).toBe("/accounts/default");
  const hider = new SecretHider();
  for (const text of [
    "//" + ":".repeat(500_000),
    "-eyJ".repeat(200_000),
    "sk-".repeat(300_000),
    "=&".repeat(400_000),
  ]) {
    expect(hider.hideText(text).length).toBeLessThan(3000);
  }
});
