/** Ids of accounts and gateways. Users choose them, and they appear in URLs. */
const IDENTIFIER = /^[A-Za-z0-9_-]{1,64}$/;

export function isIdentifier(text: string): boolean {
  return IDENTIFIER.test(text);
}

/**
 * First segments below `/v1/` of the gateway's doors (`/v1/chat/completions`, `/v1/models`, …). An account of that name could not be
 * reached there.
 */
export const DOOR_WORDS: ReadonlySet<string> = new Set([
  "audio",
  "batches",
  "chat",
  "completions",
  "embeddings",
  "files",
  "images",
  "messages",
  "models",
  "moderations",
  "realtime",
  "rerank",
  "responses",
]);
