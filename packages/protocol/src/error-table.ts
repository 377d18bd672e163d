/**
 * All errors that a client can receive: code, HTTP status, message, and whether a retry can succeed. Code refers to an entry by name and
 * states no status or code itself. `docs/reference/errors.md` is generated from this table; a test compares the two.
 */

/** The part of the documentation that lists the entry. Every part of the service may use it. */
export type ErrorArea = "management" | "gateway" | "webhooks" | "agents" | "tags";

export interface ErrorEntry {
  readonly area: ErrorArea;
  /** Number in `errors[].code`; unique in the table. */
  readonly code: number;
  readonly status: number;
  /** Default message; the code that throws the error may give a more specific one. */
  readonly message: string;
  /** True if the same request can succeed later. */
  readonly retryable: boolean;
  /** Close code of a WebSocket that this error ends. Clients do not reconnect after 1008 and 4000–4999. */
  readonly closeCode?: number;
}

const management = (code: number, status: number, message: string, retryable = false, closeCode?: number) =>
  entry("management", code, status, message, retryable, closeCode);
const gateway = (code: number, status: number, message: string, retryable = false) =>
  entry("gateway", code, status, message, retryable);
const webhooks = (code: number, status: number, message: string) =>
  entry("webhooks", code, status, message, false);
const agents = (code: number, status: number, message: string, retryable = false, closeCode?: number) =>
  entry("agents", code, status, message, retryable, closeCode);
const tags = (code: number, message: string, status = 400) => entry("tags", code, status, message, false);

function entry(
  area: ErrorArea,
  code: number,
  status: number,
  message: string,
  retryable: boolean,
  closeCode?: number,
): ErrorEntry {
  const base = { area, code, status, message, retryable };
  return closeCode === undefined ? base : { ...base, closeCode };
}

export const ERROR_TABLE = {
  // Listener and management interface.
  internal: management(1000, 500, "Internal error", true, 1011),
  unauthenticated: management(10000, 401, "Authentication error", false, 4401),
  forbidden: management(10003, 403, "Permission denied", false, 4403),
  too_many_failures: management(10004, 429, "Too many failed attempts", true),
  method_not_allowed: management(7001, 405, "Method not allowed"),
  invalid_request: management(7002, 400, "Invalid request", false, 1008),
  not_found: management(7003, 404, "Not found", false, 4404),
  conflict: management(7004, 409, "Already exists"),
  malformed_http: management(7005, 400, "Malformed HTTP request", false, 1008),
  headers_too_large: management(7006, 431, "Request headers too large"),
  request_timeout: management(7007, 408, "The request was not received in time", true),
  overloaded: management(7008, 503, "Overloaded, try again later", true, 1013),
  stopping: management(7009, 503, "The server is stopping", true, 1012),
  body_too_large: management(7010, 413, "Request body too large", false, 1009),
  unsupported_media_type: management(7011, 415, "Content-Type must be application/json"),
  not_ready: management(7012, 503, "Not ready", true, 1013),
  storage_unavailable: management(7013, 503, "Storage is unavailable; nothing was written", true, 1013),
  write_outcome_unknown: management(
    7014,
    503,
    "The database connection was lost during the commit; read the resource to find out whether it changed",
    false,
    1013,
  ),
  node_stale: management(
    7017,
    503,
    "This node has not reached its database for too long; another node may answer",
    true,
    1013,
  ),
  changed_meanwhile: management(7016, 412, "Changed since it was read; nothing was written. Read it again"),
  expectation_failed: management(7015, 417, "Unsupported expectation; only 100-continue is supported"),

  // Gateway calls.
  gateway_not_found: gateway(2001, 400, "Gateway not found"),
  gateway_malformed_request: gateway(2002, 400, "Malformed request"),
  gateway_rate_limited: gateway(2003, 429, "Rate limited", true),
  gateway_provider_timeout: gateway(2004, 504, "Provider timed out", true),
  gateway_provider_unreachable: gateway(2005, 502, "Provider unreachable", true),
  gateway_unknown_provider: gateway(2008, 400, "Invalid provider"),
  gateway_unauthorized: gateway(2009, 401, "Unauthorized"),
  gateway_body_too_large: gateway(2010, 413, "Request body too large"),
  gateway_prompt_blocked: gateway(2016, 424, "Prompt blocked by a guardrail"),
  gateway_response_blocked: gateway(2017, 424, "Response blocked by a guardrail"),
  gateway_dlp_request_blocked: gateway(2029, 424, "Prompt blocked by data loss prevention"),
  gateway_dlp_response_blocked: gateway(2030, 424, "Response blocked by data loss prevention"),
  /** The number that the hosted original has for it; numbers are unique in an area. */
  gateway_guardrail_unavailable: gateway(7013, 503, "A guardrail could not judge the call", true),
  gateway_unknown_key_alias: gateway(2040, 400, "Unknown stored key alias"),
  gateway_spend_limit: gateway(2041, 429, "Spend limit exceeded", true),
  gateway_unknown_price: gateway(2042, 429, "Price of the model unknown"),
  gateway_model_not_allowed: gateway(2043, 403, "Model not allowed for this token"),
  gateway_unknown_route: gateway(2044, 400, "Unknown dynamic route"),
  gateway_route_without_model: gateway(2045, 400, "The dynamic route reached no model"),
  gateway_credential_required: gateway(2047, 400, "Provider credentials required"),
  gateway_identity_failed: gateway(2046, 502, "The identity of the provider key gave no credential", true),

  // Webhook intake.
  webhook_invalid_signature: webhooks(4001, 401, "Invalid signature"),
  webhook_invalid_payload: webhooks(4002, 400, "Invalid payload"),
  webhook_missing_entity: webhooks(4003, 400, "Missing entity"),
  webhook_entity_mismatch: webhooks(
    4004,
    400,
    "The entity in the URL does not match the entity in the payload",
  ),
  webhook_unknown_source: webhooks(4005, 404, "Unknown webhook source"),
  webhook_unsupported_media_type: webhooks(
    4006,
    415,
    "Content-Type must be JSON or the form type of the source",
  ),
  webhook_rejected: webhooks(4010, 400, "The agent rejected the event"),

  // Agents.
  agent_not_found: agents(3001, 404, "Agent not found", false, 4404),
  agent_invalid_name: agents(3002, 400, "Invalid instance name", false, 4400),
  agent_instance_not_found: agents(3003, 404, "Instance not found", false, 4404),
  agent_method_unknown: agents(3004, 404, "Method does not exist"),
  agent_method_not_callable: agents(3005, 403, "Method is not callable"),
  agent_readonly: agents(3006, 403, "Connection is readonly"),
  agent_failed: agents(3007, 500, "The agent failed"),
  agent_turn_timeout: agents(3008, 504, "The turn timed out", true),
  agent_call_cycle: agents(3009, 409, "The call would deadlock: it waits for its own caller"),
  agent_destroyed: agents(3010, 410, "The instance was destroyed", true, 4410),
  agent_sql: agents(3011, 400, "The SQL statement failed"),
  agent_outcome_unknown: agents(
    3012,
    503,
    "The node that runs the instance was lost before it answered; the request may have been carried out",
    false,
    1013,
  ),
  worker_failed: agents(3020, 500, "The worker failed"),
  worker_rejected_email: agents(3021, 400, "The worker rejected the email"),

  // Tags.
  tags_invalid_set_payload: tags(1002, "Invalid set payload"),
  tags_resource_required: tags(1003, "resource_type and resource_id are required"),
  tags_resource_not_found: tags(1004, "resource not found", 500),
  tags_invalid_resource_type: tags(1006, "Invalid resource type"),
  tags_invalid_filter: tags(
    1007,
    "tag parameter must be in format key, key=value, key=value1,value2, !key or key!=value",
  ),
  tags_key_required: tags(1009, "tag_key is required"),
  tags_too_many_filters: tags(1010, "too many tag filters (maximum 20)"),
  tags_key_too_long: tags(1011, "tag key too long (maximum 256 characters)"),
  tags_value_too_long: tags(1012, "tag value too long (maximum 1024 characters)"),
  tags_too_many_values: tags(1013, "too many OR values in tag filter (maximum 10)"),
  tags_invalid_key: tags(1014, "Invalid tag key"),
  tags_invalid_delete_payload: tags(1015, "Invalid delete payload"),
  tags_etag_mismatch: tags(1016, "etag does not match", 412),
  tags_too_many_tags: tags(1017, "too many tags on one resource"),
  tags_changes_expired: tags(1018, "changes after this position have been deleted", 410),
} as const satisfies Record<string, ErrorEntry>;

export type ErrorName = keyof typeof ERROR_TABLE;
