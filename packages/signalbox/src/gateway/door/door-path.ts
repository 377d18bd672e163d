/**
 * The paths of the unified doors, which take the requests of a provider's SDK for models of any provider:
 *
 *   /v1/{account}/{gateway}/compat/{endpoint}       errors in the gateway's own format
 *   /v1/{endpoint}                                  the account `default`; the gateway by header
 *   /accounts/{account}/ai/v1/{endpoint}            the gateway by header; also below /client/v4
 *   /accounts/{account}/ai/run                      `{model, input}`
 *
 * Below `compat` and the bare `/v1`, an endpoint may have `v1/` before it: Anthropic's SDK adds it to its base address.
 */
import { DEFAULT_ACCOUNT } from "../../core/default-account.ts";
import type { ErrorDialect } from "../../http/render-error.ts";
import { decodePath } from "../plan/forwarded-request.ts";
import type { ModelRequest } from "../plan/model-request.ts";
import { MODEL_ENDPOINTS } from "../plan/universal-step.ts";

export type DoorEndpoint =
  | ModelRequest["endpoint"]
  | "count_tokens"
  | "models"
  | "run"
  /** Below a door, but none of its endpoints. */
  | "unknown";

export interface DoorPath {
  readonly accountId: string;
  /** Null when a header names the gateway. */
  readonly gatewayId: string | null;
  readonly endpoint: DoorEndpoint;
  /** The model that the path names; null when it names none. */
  readonly model: string | null;
  readonly errorDialect: ErrorDialect;
}

const VERSION = "v1/";

const ENDPOINTS: ReadonlyMap<string, DoorEndpoint> = new Map<string, DoorEndpoint>([
  ...MODEL_ENDPOINTS,
  ["messages/count_tokens", "count_tokens"],
  ["models", "models"],
]);
const MODELS = "models/";
const RUN = "run/";

/** The paths below `/accounts` that belong to the doors. */
export const ACCOUNT_DOORS = /^(?:\/client\/v4)?\/accounts\/[^/]+\/ai\/(?:v1\/|run(?:\/|$))/;

/** A path after `/v1/` whose first segment is one of `DOOR_WORDS`. */
export function parseBareDoor(rest: string): DoorPath {
  const { endpoint, model } = toEndpoint(rest);
  return {
    accountId: DEFAULT_ACCOUNT,
    gatewayId: null,
    endpoint,
    model,
    errorDialect: sdkDialect(endpoint),
  };
}

export function parseCompatDoor(accountId: string, gatewayId: string, rest: string): DoorPath {
  const { endpoint, model } = toEndpoint(rest.startsWith(VERSION) ? rest.slice(VERSION.length) : rest);
  return { accountId, gatewayId, endpoint, model, errorDialect: "gateway" };
}

/** A path that matches `ACCOUNT_DOORS`. */
export function parseAccountDoor(path: string): DoorPath {
  const [, accountId = "", rest = ""] = /\/accounts\/([^/]+)\/ai\/(.*)$/.exec(path) ?? [];
  const account = { accountId: decodePath(accountId), gatewayId: null };
  if (!rest.startsWith(VERSION)) {
    const model = rest.startsWith(RUN) ? decodePath(rest.slice(RUN.length)) : null;
    return { ...account, endpoint: "run", model, errorDialect: "run" };
  }
  const { endpoint, model } = toEndpoint(rest.slice(VERSION.length));
  return { ...account, endpoint, model, errorDialect: sdkDialect(endpoint) };
}

function toEndpoint(path: string): { readonly endpoint: DoorEndpoint; readonly model: string | null } {
  if (path.startsWith(MODELS)) return { endpoint: "models", model: decodePath(path.slice(MODELS.length)) };
  return { endpoint: ENDPOINTS.get(path) ?? "unknown", model: null };
}

function sdkDialect(endpoint: DoorEndpoint): ErrorDialect {
  return endpoint === "messages" || endpoint === "count_tokens" ? "anthropic" : "openai";
}
