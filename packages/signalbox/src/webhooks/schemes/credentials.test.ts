/** Schemes whose senders send the secret itself. */
import { expect, it } from "vitest";
import { createAddressScheme, createApiKeyScheme, createBasicScheme } from "./index.ts";
import { ADDRESS, BODY, describeScheme, NOW, SECRET, verdict } from "./scheme-contract.ts";

const basic = createBasicScheme("basic");
const byHeader = createApiKeyScheme("key", { header: "x-api-key", prefix: "" });
const byParameter = createApiKeyScheme("key", { parameter: "api_key" });

describeScheme({
  title: "basic",
  scheme: basic,
  secret: "user:pass:word",
  otherSecret: "user:other",
  covers: "nothing",
});
describeScheme({ title: "a key in a header", scheme: byHeader, secret: SECRET, covers: "nothing" });
describeScheme({
  title: "a key after a word",
  scheme: createApiKeyScheme("key", { header: "authorization", prefix: "Token " }),
  secret: SECRET,
  covers: "nothing",
});
describeScheme({ title: "a key in the address", scheme: byParameter, secret: SECRET, covers: "nothing" });

it("a key in the address is refused if it is wrong, missing or there twice", () => {
  const { query = "" } = byParameter.sign({ secret: SECRET, body: BODY, now: NOW, deliveryId: "", url: "" });
  const check = (search: string) =>
    verdict(byParameter, { headers: {}, body: BODY, url: `${ADDRESS}?${search}` }, SECRET);
  expect(check(`a=1&${query}`)).toBeNull();
  expect(check("")).toBe("signature_missing");
  expect(check("api_key=wrong")).toBe("signature_mismatch");
  expect(check(`${query}&api_key=wrong`)).toBe("signature_malformed");
  expect(check(`${query}x`)).toBe("signature_mismatch");
});

it("a user without a password is no secret", () => {
  expect(() => basic.toKey("user")).toThrow("expected user:password");
});

it("an address needs no secret", () => {
  expect(createAddressScheme("addresses").needsNoSecret).toBe(true);
});
