/** Sends deliveries as providers do. Signatures are made with node:crypto, not with the code under test. */
import { createHmac } from "node:crypto";
import { type Answer, readAnswer } from "./send-request.ts";

export const SECRET = "a-shared-secret-of-the-tests";

export function hexSignature(body: string, secret = SECRET): string {
  return `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`;
}

export async function post(url: string, body: string, headers: Record<string, string>): Promise<Answer> {
  const response = await fetch(url, {
    method: "POST",
    body,
    headers: { "content-type": "application/json", ...headers },
  });
  return readAnswer(response);
}

/** To `/webhooks/<path>`, signed with the generic scheme. */
export function sendGeneric(
  base: string,
  path: string,
  payload: unknown,
  headers: Record<string, string> = {},
  secret = SECRET,
): Promise<Answer> {
  const body = typeof payload === "string" ? payload : JSON.stringify(payload);
  return post(`${base}/webhooks/${path}`, body, { "x-signature": hexSignature(body, secret), ...headers });
}

export interface GithubDelivery {
  readonly repository?: string;
  readonly event?: string;
  readonly delivery?: string;
  readonly payload?: object;
  readonly path?: string;
}

export function sendGithub(base: string, options: GithubDelivery = {}): Promise<Answer> {
  const {
    repository,
    event = "push",
    delivery = crypto.randomUUID(),
    payload = {},
    path = "github",
  } = options;
  const body = JSON.stringify({
    ...(repository === undefined ? {} : { repository: { full_name: repository } }),
    ...payload,
  });
  return post(`${base}/webhooks/${path}`, body, {
    "x-hub-signature-256": hexSignature(body),
    "x-github-event": event,
    "x-github-delivery": delivery,
  });
}
