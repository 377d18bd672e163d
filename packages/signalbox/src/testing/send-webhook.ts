/** Sends a webhook as its provider does: over HTTP, signed with the secret of the source. */
import { nearestName } from "../core/nearest-name.ts";
import { ulid } from "../core/ulid.ts";
import { createSampleRequest, type Source } from "../webhooks/index.ts";
import type { TestService } from "./test-service.ts";

export interface TestWebhook {
  /** What the event is about, e.g. `acme/widgets`; it selects the instance. Default: what the payload says, or `sample/entity`. */
  readonly entity?: string;
  /** The event type, e.g. `issues`, put where the source reads it. Default: that of the source's sample. */
  readonly type?: string;
  /** Default: the source's sample. */
  readonly payload?: Readonly<Record<string, unknown>>;
  /** Additional headers. */
  readonly headers?: Readonly<Record<string, string>>;
  /** A second delivery with the same id is a duplicate. Default: a new one. */
  readonly id?: string;
  /** Default: the secret of the source. Another one makes the signature wrong. */
  readonly secret?: string;
}

export interface WebhookAnswer {
  readonly status: number;
  readonly body: string;
}

export async function sendWebhook(
  { sources, url }: TestService,
  name: string,
  webhook: TestWebhook,
  now: number,
): Promise<WebhookAnswer> {
  const source = sources.get(name);
  if (source === undefined) {
    const nearest = nearestName(name, sources.keys());
    throw new Error(
      `no webhook source "${name}"${nearest === undefined ? "" : `, did you mean "${nearest}"?`}`,
    );
  }
  const secret = webhook.secret ?? source.secrets[0]?.reveal();
  if (secret === undefined) throw new Error(`the source ${name} has no secret: set ${source.secretVariable}`);
  const { payload, headers } = withType(source, webhook);
  const { entity } = webhook;
  const path = payload !== undefined && entity !== undefined ? `/${encodeURIComponent(entity)}` : "";
  const request = createSampleRequest(source, {
    entity: entity ?? "sample/entity",
    secret,
    deliveryId: webhook.id ?? `test-${ulid(now)}`,
    now,
    url: `${url}/webhooks/${name}${path}`,
    body: payload === undefined ? undefined : JSON.stringify(payload),
    headers,
  });
  const response = await fetch(request.url, { method: "POST", headers: request.headers, body: request.body });
  return { status: response.status, body: await response.text() };
}

/** A source reads the type from a header or from a field of the body. */
function withType(source: Source, { type, payload, headers = {} }: TestWebhook) {
  const lower = Object.fromEntries(Object.entries(headers).map(([key, value]) => [key.toLowerCase(), value]));
  const [kind, ...rest] = source.eventType[0]?.text.split(":") ?? [];
  const place = rest.join(":");
  if (type === undefined) return { payload, headers: lower };
  if (kind === "header") return { payload, headers: { [place.toLowerCase()]: type, ...lower } };
  if (kind === "body" && payload !== undefined)
    return { payload: withField(payload, place.split("."), type), headers: lower };
  throw new Error(
    `the source ${source.name} reads the type from ${kind} ${place}: give a payload or headers with it`,
  );
}

function withField(
  payload: Readonly<Record<string, unknown>>,
  [first = "", ...rest]: readonly string[],
  value: string,
): Record<string, unknown> {
  const inner = (payload[first] ?? {}) as Readonly<Record<string, unknown>>;
  return { ...payload, [first]: rest.length === 0 ? value : withField(inner, rest, value) };
}
