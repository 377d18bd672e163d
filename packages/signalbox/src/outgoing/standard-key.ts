/**
 * The key bytes of a Standard Webhooks secret. `whsec_` and bare secrets are base64, as the scheme's libraries read them; a text that is
 * no canonical base64 could never be used there and counts as raw bytes (the libraries' `format: "raw"`).
 */
const PREFIX = "whsec_";

export function standardKey(secret: string): Buffer {
  const text = secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret;
  const bytes = Buffer.from(text, "base64");
  return bytes.length > 0 && bytes.toString("base64") === text ? bytes : Buffer.from(secret);
}
