/** Outgoing calls of an agent, with a span below that of its turn. The receiver can continue the trace; a `traceparent` of the agent's own stays. */
import type { Attributes } from "../../engines/otlp-export/index.ts";
import type { OutgoingSender } from "../../outgoing/index.ts";
import type { TurnSpans } from "../../telemetry/turn-spans.ts";

export function tracedFetch(
  spans: TurnSpans,
  input: string | URL | Request,
  init: RequestInit | undefined,
): Promise<Response> {
  const url = input instanceof Request ? input.url : String(input);
  return spans.outgoing("fetch", addressOf(url), (traceparent) => {
    const headers = new Headers(init?.headers ?? (input instanceof Request ? input.headers : undefined));
    if (traceparent !== undefined && !headers.has("traceparent")) headers.set("traceparent", traceparent);
    return fetch(input, { ...init, headers });
  });
}

export function tracedWebhook(
  spans: TurnSpans,
  outgoing: OutgoingSender,
  webhook: Parameters<OutgoingSender["send"]>[0],
): ReturnType<OutgoingSender["send"]> {
  return spans.outgoing("POST", addressOf(webhook.url), (traceparent) =>
    traceparent === undefined
      ? outgoing.send(webhook)
      : outgoing.send({ ...webhook, headers: { traceparent, ...webhook.headers } }),
  );
}

/** Without query, user and password, which may be credentials. */
function addressOf(text: string): Attributes {
  const url = URL.parse(text);
  return url === null ? [] : ["server.address", url.hostname, "url.full", url.origin + url.pathname];
}
