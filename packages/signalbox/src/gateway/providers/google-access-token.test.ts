import { createVerify, generateKeyPairSync } from "node:crypto";
import { expect, it, vi } from "vitest";
import { GoogleAccessTokens } from "./google-access-token.ts";

const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const KEY_FILE = JSON.stringify({
  type: "service_account",
  client_email: "robot@example.iam.gserviceaccount.com",
  private_key: privateKey.export({ type: "pkcs8", format: "pem" }),
  private_key_id: "key-1",
  token_uri: "https://evil.example/token",
});
const URL_ = "https://oauth2.example/token";

function create(answer: (form: URLSearchParams) => { status: number; body: string }) {
  const clock = { time: Date.UTC(2026, 10, 16), now: () => clock.time };
  const post = vi.fn((_url: string, form: string) => Promise.resolve(answer(new URLSearchParams(form))));
  return { clock, post, tokens: new GoogleAccessTokens(post, clock, URL_) };
}

const granted = (token: string) => ({
  status: 200,
  body: JSON.stringify({ access_token: token, expires_in: 3600 }),
});

it("exchanges a signed assertion at the configured address", async () => {
  const { tokens, post } = create((form) => {
    const [header = "", claims = "", signature = ""] = (form.get("assertion") ?? "").split(".");
    expect(form.get("grant_type")).toBe("urn:ietf:params:oauth:grant-type:jwt-bearer");
    const read = (part: string) => JSON.parse(Buffer.from(part, "base64url").toString()) as object;
    expect(read(header)).toEqual({ alg: "RS256", typ: "JWT", kid: "key-1" });
    expect(read(claims)).toMatchObject({ iss: "robot@example.iam.gserviceaccount.com", aud: URL_ });
    const isValid = createVerify("RSA-SHA256")
      .update(`${header}.${claims}`)
      .verify(publicKey, Buffer.from(signature, "base64url"));
    expect(isValid).toBe(true);
    return granted("ya29.one");
  });
  expect(await tokens.tokenFor(KEY_FILE)).toBe("ya29.one");
  expect(post.mock.calls.map(([url]) => url)).toEqual([URL_]);
});

it("keeps a token until shortly before it expires, and shares one exchange", async () => {
  let count = 0;
  const { tokens, post, clock } = create(() => granted(`token-${++count}`));
  expect(await Promise.all([tokens.tokenFor(KEY_FILE), tokens.tokenFor(KEY_FILE)])).toEqual([
    "token-1",
    "token-1",
  ]);
  clock.time += 54 * 60_000;
  expect(await tokens.tokenFor(KEY_FILE)).toBe("token-1");
  clock.time += 2 * 60_000;
  expect(await tokens.tokenFor(KEY_FILE)).toBe("token-2");
  expect(post).toHaveBeenCalledTimes(2);
});

it("keeps no failure, and says what Google said", async () => {
  let isRefused = true;
  const { tokens } = create(() =>
    isRefused ? { status: 400, body: JSON.stringify({ error: "invalid_grant" }) } : granted("later"),
  );
  await expect(tokens.tokenFor(KEY_FILE)).rejects.toThrow("invalid_grant");
  isRefused = false;
  expect(await tokens.tokenFor(KEY_FILE)).toBe("later");
});

it("refuses a key that is no key file, and a token that is no header value", async () => {
  const { tokens } = create(() => ({ status: 200, body: JSON.stringify({ access_token: "a\r\nb" }) }));
  await expect(tokens.tokenFor(KEY_FILE)).rejects.toThrow("refused");
  await expect(tokens.tokenFor("{}")).rejects.toThrow("key file");
  await expect(tokens.tokenFor("{nonsense")).rejects.toThrow();
});
