/** JSON requests with the root token, and the response with its parsed body. */
import { ROOT_TOKEN } from "./root-token.ts";

export interface Target {
  readonly url: string;
  /** Default: the root token. */
  readonly credential?: string;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Parsed JSON, the text if it is not JSON, or null if it is empty. */
  // oxlint-disable-next-line typescript/no-explicit-any -- tests read any member of a response
  readonly body: any;
}

export async function sendRequest(
  { url, credential = ROOT_TOKEN }: Target,
  method: string,
  path: string,
  body?: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const response = await fetch(url + path, {
    method,
    headers: { authorization: `Bearer ${credential}`, "content-type": "application/json", ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return readAnswer(response);
}

export async function readAnswer(response: Response): Promise<Answer> {
  const text = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    text,
    body: text === "" ? null : parseJson(text),
  };
}

/** The parsed value, or the text itself if it is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** The code of the first error. */
export const codeOf = ({ body }: Answer) => (body as { errors: { code: number }[] }).errors[0]?.code;

/** A call of the echo provider, with a provider's key: the gateway refuses Signalbox tokens as provider keys. */
export const callEcho = (target: Target, content = "hello") =>
  sendRequest(
    target,
    "POST",
    "/v1/default/default/echo/chat/completions",
    { model: "echo", messages: [{ role: "user", content }] },
    { authorization: "Bearer key-of-a-provider" },
  );

export const createToken = (target: Target) =>
  sendRequest(target, "POST", "/accounts/default/tokens", { name: "t", permissions: ["tags.read"] });

/** Ids of an instance's newest 100 events, newest first. */
export async function eventIds(target: Target, instance: string, agent = "webhook-agent"): Promise<string[]> {
  const path = `/agents/${agent}/${encodeURIComponent(instance)}/rpc/getEvents`;
  const { body } = await sendRequest(target, "POST", path, [100]);
  return body.result.map(({ id }: { id: string }) => id);
}
