/** Sources and deliveries as JSON of the management interface, without secrets. */
import { isUtf8 } from "node:buffer";
import { z } from "zod";
import { DELIVERY_STATUSES, type DeliveryRecord } from "./delivery-record.ts";
import { explainReason } from "./explain-delivery.ts";
import type { RejectedRequest } from "./rejected-request.ts";
import type { Source } from "./source.ts";

export const sourceResult = z.object({
  name: z.string(),
  kind: z.string(),
  scheme: z.string(),
  path: z.string(),
  agent: z.string(),
  secret_variable: z.string(),
  secrets: z.number(),
  window_seconds: z.number().nullable(),
  entity: z.array(z.string()),
  entity_form: z.enum(["plain", "reversible"]),
});

export const deliveryResult = z.object({
  id: z.string(),
  source: z.string(),
  status: z.enum(DELIVERY_STATUSES),
  reason: z.string().nullable(),
  http_status: z.number(),
  received_at: z.iso.datetime(),
  duration_ms: z.number(),
  delivery_id: z.string().nullable(),
  type: z.string().nullable(),
  title: z.string().nullable(),
  agent: z.string(),
  instance: z.string().nullable(),
  body_bytes: z.number(),
  explanation: z.string().nullable(),
  error: z.object({ name: z.string(), message: z.string() }).nullable(),
  replayed_at: z.iso.datetime().nullable(),
});

export const errorResult = z.object({
  name: z.string(),
  message: z.string(),
  stack: z.string().nullable(),
});

const requestResult = z.object({
  address: z.string().nullable(),
  user_agent: z.string().nullable(),
  header_names: z.array(z.string()),
  signature: z.object({ header: z.string(), value: z.string() }).nullable(),
  expected: z.string(),
  body_preview: z.string().nullable(),
  also_rejected: z.int(),
});

export const deliveryDetailResult = deliveryResult.extend({
  error: errorResult.nullable(),
  request: requestResult.nullable(),
  content_type: z.string().nullable(),
  headers: z.record(z.string(), z.string()),
  body: z.string().nullable(),
  body_encoding: z.enum(["utf8", "base64"]).nullable(),
});

export function showSource(source: Source): z.input<typeof sourceResult> {
  return {
    name: source.name,
    kind: source.kind.name,
    scheme: source.scheme.summary,
    path: `/webhooks/${source.name}`,
    agent: source.agent,
    secret_variable: source.secretVariable,
    secrets: source.keys.length,
    window_seconds: source.windowMs === 0 ? null : source.windowMs / 1000,
    entity: source.entity.map((rule) => rule.text),
    entity_form: source.entityForm,
  };
}

export function showDelivery(record: DeliveryRecord): z.input<typeof deliveryResult> {
  return {
    id: record.id,
    source: record.source,
    status: record.status,
    reason: record.reason,
    http_status: record.httpStatus,
    received_at: new Date(record.receivedAt).toISOString(),
    duration_ms: Math.round(record.durationMs),
    delivery_id: record.deliveryId || null,
    type: record.type || null,
    title: record.title || null,
    agent: record.agent,
    instance: record.instance || null,
    body_bytes: record.bodyBytes,
    explanation: explainReason(record.reason),
    error: record.error === null ? null : { name: record.error.name, message: record.error.message },
    replayed_at: record.replayedAt === null ? null : new Date(record.replayedAt).toISOString(),
  };
}

function showRequest(request: RejectedRequest): z.input<typeof requestResult> {
  return {
    address: request.address,
    user_agent: request.userAgent,
    header_names: [...request.headerNames],
    signature: request.signature,
    expected: request.expected,
    body_preview: request.bodyPreview,
    also_rejected: request.alsoRejected,
  };
}

export function deliveryDetail(record: DeliveryRecord): z.input<typeof deliveryDetailResult> {
  const body = record.body === null ? null : Buffer.from(record.body);
  const encoding = body === null ? null : isUtf8(body) ? "utf8" : "base64";
  return {
    ...showDelivery(record),
    error: record.error ?? null,
    request: record.request == null ? null : showRequest(record.request),
    content_type: record.contentType,
    headers: record.headers,
    body: body === null || encoding === null ? null : body.toString(encoding),
    body_encoding: encoding,
  };
}
