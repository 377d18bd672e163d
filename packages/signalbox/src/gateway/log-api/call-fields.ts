/**
 * The public fields of a stored call, each with its column in the call log: first the fields that the `cloudflare` SDK types, under the SDK's
 * names. The schema of a call, its JSON, its filters and its orders are derived from this table and the table of columns.
 */
import { z } from "zod";
import { CALL_COLUMNS, type CallField, type CallOrder, type CallRow } from "../../engines/call-log/index.ts";

type ColumnName = keyof typeof CALL_COLUMNS;

interface PublicField {
  readonly column: ColumnName;
  /** A null is left out of the JSON. */
  readonly omitsNull?: true;
  /** Shows whether the column has a value, instead of the value. */
  readonly isPresence?: true;
  /** Null when the usage of the call is unknown: it is not zero. */
  readonly isUsage?: true;
}

const FIELDS: Readonly<Record<string, PublicField>> = {
  id: { column: "id" },
  created_at: { column: "createdAt" },
  provider: { column: "provider" },
  model: { column: "model" },
  model_type: { column: "requestType" },
  path: { column: "path" },
  method: { column: "method" },
  duration: { column: "durationMs" },
  time_to_first_byte: { column: "firstByteMs" },
  request_type: { column: "requestType" },
  request_content_type: { column: "requestContentType" },
  response_content_type: { column: "responseContentType" },
  status_code: { column: "statusCode" },
  success: { column: "success" },
  cached: { column: "cached" },
  tokens_in: { column: "tokensIn", isUsage: true },
  tokens_out: { column: "tokensOut", isUsage: true },
  tokens_in_cached: { column: "tokensInCached" },
  tokens_in_cache_write: { column: "tokensInCacheWrite" },
  tokens_out_reasoning: { column: "tokensOutReasoning" },
  cost: { column: "cost", omitsNull: true },
  custom_cost: { column: "isCustomCost" },
  usage: { column: "usageState" },
  cost_estimated: { column: "isCostEstimated" },
  metadata: { column: "metadata", omitsNull: true },
  step: { column: "step" },
  event_id: { column: "eventId" },
  user_agent: { column: "userAgent" },
  authentication: { column: "tokenId", isPresence: true },
  client_dialect: { column: "clientDialect", omitsNull: true },
  provider_dialect: { column: "providerDialect", omitsNull: true },
  dropped: { column: "dropped", omitsNull: true },
  guardrail_action: { column: "guardrailAction", omitsNull: true },
  dlp_action: { column: "dlpAction", omitsNull: true },
  guardrails: { column: "guardrails", omitsNull: true },
  attempts: { column: "attempts", omitsNull: true },
  token_id: { column: "tokenId", omitsNull: true },
  feedback: { column: "feedback" },
  score: { column: "score" },
  request_size: { column: "requestBytes" },
  response_size: { column: "responseBytes" },
};
const ENTRIES = Object.entries(FIELDS);

export type ValueKind = "text" | "number" | "boolean" | "time";

interface FilterKey {
  readonly field: CallField;
  readonly kind: ValueKind;
}

/** Public name → field and type of the values. */
export const FILTER_KEYS: Readonly<Record<string, FilterKey>> = {
  ...Object.fromEntries(
    ENTRIES.filter(([, { column }]) => "filterable" in CALL_COLUMNS[column]).map(([name, { column }]) => [
      name,
      { field: column as CallField, kind: kindOf(column) },
    ]),
  ),
  tokens: { field: "tokens", kind: "number" },
  authentication: { field: "isAuthenticated", kind: "boolean" },
  "metadata.key": { field: "metadataKey", kind: "text" },
  "metadata.value": { field: "metadataValue", kind: "text" },
};

/** Public name → column; a column with two names is an order under the first. */
export const ORDER_KEYS: Readonly<Record<string, CallOrder>> = Object.fromEntries(
  ENTRIES.filter(
    ([name, { column }]) =>
      "sortable" in CALL_COLUMNS[column] &&
      ENTRIES.find(([, other]) => other.column === column)?.[0] === name,
  ).map(([name, { column }]) => [name, column as CallOrder]),
);

export const callResult = z.object(
  Object.fromEntries(ENTRIES.map(([name, field]) => [name, schemaOf(field)])),
);

export function showCall(row: CallRow): Record<string, unknown> {
  const shown: Record<string, unknown> = {};
  for (const [name, { column, omitsNull, isPresence, isUsage }] of ENTRIES) {
    const value = isUsage && row.usageState === "unknown" ? null : row[column];
    if (isPresence) shown[name] = value !== null;
    else if (value !== null || !omitsNull) shown[name] = showValue(column, value);
  }
  return shown;
}

function showValue(column: ColumnName, value: string | number | boolean | null): unknown {
  return kindOf(column) === "time" && value !== null ? new Date(Number(value)).toISOString() : value;
}

function kindOf(column: ColumnName): ValueKind {
  switch (CALL_COLUMNS[column].kind) {
    case "id":
    case "text":
    case "json":
      return "text";
    case "time":
      return "time";
    case "flag":
      return "boolean";
    case "integer":
    case "real":
    case "ms":
      return "number";
  }
}

function schemaOf({ column, omitsNull, isPresence, isUsage }: PublicField): z.ZodType {
  const kind = isPresence ? "boolean" : kindOf(column);
  const schema = {
    text: z.string(),
    number: z.number(),
    boolean: z.boolean(),
    time: z.iso.datetime(),
  }[kind];
  if (omitsNull) return schema.optional();
  return isUsage || ("nullable" in CALL_COLUMNS[column] && !isPresence) ? schema.nullable() : schema;
}
