/**
 * The key bytes of a Standard Webhooks secret. Secrets with and without `whsec_` are base64, as the scheme's libraries decode them. Text
 * that is not canonical base64 is used as raw bytes (`format: "raw"` of the libraries).
 */
const PREFIX = "whsec_";

export function standardKey(secret: string): Buffer {
  const text = secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret;
  const bytes = Buffer.from(text, "base64");
  return bytes.length > 0 && bytes.toString("base64") === text ? bytes : Buffer.from(secret);
}
