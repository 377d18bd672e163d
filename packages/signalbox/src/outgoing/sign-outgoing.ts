/**
 * Builds the headers of an outgoing webhook: the three of Standard Webhooks, and `X-Signature` of the generic scheme, both with the same
 * secret. Without a secret only id and time are sent.
 */
import { createHmac, createSecretKey } from "node:crypto";
import { standardKey } from "./standard-key.ts";

export interface OutgoingSignature {
  readonly id: string;
  /** Milliseconds since the epoch. */
  readonly time: number;
  readonly body: string | Uint8Array;
  readonly secret?: string | undefined;
}

export function signOutgoing({ id, time, body, secret }: OutgoingSignature): Record<string, string> {
  const timestamp = String(Math.floor(time / 1000));
  const headers = { "webhook-id": id, "webhook-timestamp": timestamp };
  if (secret === undefined) return headers;
  const standard = createHmac("sha256", createSecretKey(standardKey(secret)))
    .update(`${id}.${timestamp}.`)
    .update(body)
    .digest("base64");
  return {
    ...headers,
    "webhook-signature": `v1,${standard}`,
    "x-signature": `sha256=${createHmac("sha256", createSecretKey(secret, "utf8")).update(body).digest("hex")}`,
  };
}
