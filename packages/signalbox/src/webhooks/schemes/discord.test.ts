/** Discord's scheme against `discord-interactions`. */
import { generateKeyPairSync } from "node:crypto";
import { verifyKey } from "discord-interactions";
import { expect, it } from "vitest";
import { discordScheme } from "./index.ts";
import { describeScheme } from "./scheme-contract.ts";

function createKeys() {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  return {
    publicText: publicKey.export({ format: "der", type: "spki" }).subarray(-32).toString("hex"),
    seed: privateKey.export({ format: "der", type: "pkcs8" }).subarray(-32).toString("hex"),
  };
}

const keys = createKeys();

describeScheme({
  title: "discord",
  scheme: discordScheme,
  secret: keys.publicText,
  otherSecret: createKeys().publicText,
  signingSecret: keys.seed,
  vendor: (headers, body) =>
    verifyKey(
      body,
      headers["x-signature-ed25519"] ?? "",
      headers["x-signature-timestamp"] ?? "",
      keys.publicText,
    ),
});

it("discord names what it expects of a public key, and does not repeat the text", () => {
  expect(() => discordScheme.toKey("not-a-key")).toThrow(/64 hexadecimal digits/);
});
