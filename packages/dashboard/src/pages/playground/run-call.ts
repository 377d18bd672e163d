/** Sends the request of the playground to the gateway and reports the answer as it arrives. */
import { unreachable } from "../../http/api.ts";
import { connectionLost } from "../../http/connection.ts";
import { type AssembledResponse, assembleStream } from "../gateways/logs/assemble-stream.ts";
import { errorMessage } from "../gateways/logs/message-parts.ts";

export interface PlaygroundCall {
  readonly url: string;
  readonly body: object;
  readonly headers: Readonly<Record<string, string>>;
  readonly token: string;
  readonly providerKey: string;
}

export interface Outcome {
  readonly status: number;
  /** The body so far: of a stream its events. */
  readonly body: string;
  readonly stream: AssembledResponse | null;
  readonly isComplete: boolean;
  /** Milliseconds from the request to its end, or until now. */
  readonly durationMs: number;
  /** Until the first part of the answer. */
  readonly firstMs: number | null;
  readonly logId: string | null;
  readonly cacheStatus: string | null;
  /** In the words of the gateway or the provider; null for an answer. */
  readonly error: string | null;
}

/** `onPart` is called at most once per frame. Rejects if the gateway cannot be reached, or with `AbortError`. */
export async function runCall(
  { url, body, headers, token, providerKey }: PlaygroundCall,
  signal: AbortSignal,
  onPart: (outcome: Outcome) => void,
): Promise<Outcome> {
  const startedAt = performance.now();
  const response = await fetch(url, {
    method: "POST",
    // The session of the dashboard is no credential of a gateway.
    credentials: "omit",
    headers: {
      "content-type": "application/json",
      ...headers,
      ...(token === "" ? {} : { "gw-aig-authorization": `Bearer ${token}` }),
      ...(providerKey === "" ? {} : { authorization: `Bearer ${providerKey}` }),
    },
    body: JSON.stringify(body),
    signal,
  }).catch(throwUnreachable);
  const isStream = response.headers.get("content-type")?.includes("event-stream") === true;
  let text = "";
  let firstMs: number | null = null;
  const outcome = (isComplete: boolean): Outcome => ({
    status: response.status,
    body: text,
    stream: isStream ? assembleStream(text) : null,
    isComplete,
    durationMs: performance.now() - startedAt,
    firstMs,
    logId: response.headers.get("gw-aig-log-id"),
    cacheStatus: response.headers.get("gw-aig-cache-status"),
    error: response.ok ? null : (errorMessage(text) ?? `Status ${response.status}`),
  });
  const decoder = new TextDecoder();
  const reader = response.body?.getReader();
  let frame = 0;
  try {
    for (;;) {
      const part = await reader?.read().catch(throwUnreachable);
      if (part === undefined || part.done) break;
      firstMs ??= performance.now() - startedAt;
      text += decoder.decode(part.value, { stream: true });
      frame ||= requestAnimationFrame(() => {
        frame = 0;
        onPart(outcome(false));
      });
    }
  } finally {
    cancelAnimationFrame(frame);
  }
  return outcome(true);
}

/** `fetch` fails with a `TypeError` if the connection does, and with a `DOMException` if the caller aborts. */
function throwUnreachable(error: unknown): never {
  if (!(error instanceof TypeError)) throw error;
  connectionLost();
  throw unreachable(error);
}
