/**
 * Steps of the universal endpoint whose provider does not speak the dialect that their endpoint names, and steps whose model names the
 * provider (`compat`): they are planned as calls of a unified door.
 */
import { SignalboxError } from "@signalbox/protocol";
import { bearerText } from "../../accounts/index.ts";
import type { Clock } from "../../core/clock.ts";
import type { ModelNames } from "../models/model-names.ts";
import type { ModelTarget } from "../models/model-target.ts";
import type { Provider } from "../providers/provider.ts";
import type { ModelRequest } from "./model-request.ts";
import type { ForwardedHeaders } from "./forwarded-request.ts";

/** Stands for the provider that the model names. */
export const COMPAT = "compat";

const ENDPOINTS: ReadonlyMap<string, ModelRequest["endpoint"]> = new Map([
  ["chat/completions", "chat"],
  ["responses", "responses"],
  ["messages", "messages"],
  ["embeddings", "embeddings"],
]);
const VERSION = "v1/";

/** A step as it was sent. */
export interface UniversalStep extends Pick<
  ModelRequest,
  "gateway" | "body" | "options" | "traceparent" | "isAuthenticated" | "holdMemory"
> {
  readonly path: string;
  /** The body as a value. */
  readonly query: unknown;
  readonly search: string;
  readonly forwarded: Omit<ForwardedHeaders, "options">;
}

/** Null when the endpoint belongs to no door. */
export function toModelRequest(step: UniversalStep, clock: Clock): ModelRequest | null {
  const { path, query, forwarded, search, ...rest } = step;
  const endpoint = ENDPOINTS.get(path.startsWith(VERSION) ? path.slice(VERSION.length) : path);
  if (endpoint === undefined || typeof query !== "object" || query === null) return null;
  const fields = query as Readonly<Record<string, unknown>>;
  const [header, value = ""] = forwarded.credential;
  return {
    ...rest,
    endpoint,
    fields: () => fields,
    isStream: fields["stream"] === true,
    query: search,
    headers: forwarded.headers,
    credential: header === undefined ? null : { header, value, key: bearerText(value) ?? value },
    now: clock.now(),
  };
}

/** The model of a step; null when its provider takes the call as it is. `provider` is null for `compat`. */
export function targetOf(
  names: ModelNames,
  { endpoint, fields, gateway }: ModelRequest,
  provider: Provider | null,
): ModelTarget | null {
  const { model } = fields();
  if (typeof model !== "string" || model === "") return null;
  if (provider !== null) {
    return speaks(provider, model, endpoint) ? null : { provider, model, isExplicit: true };
  }
  const named = names.resolve(gateway.accountId, model);
  if (named.kind === "model") return named;
  throw new SignalboxError("gateway_malformed_request", { message: "A dynamic route must be the only step" });
}

function speaks(provider: Provider, model: string, endpoint: ModelRequest["endpoint"]): boolean {
  const { calls, embeddings } = provider.apisFor(model);
  if (endpoint === "embeddings") return embeddings?.dialect !== "gemini";
  // A provider without an API for conversations judges the call itself.
  return calls.length === 0 || calls.some(({ dialect }) => dialect === endpoint);
}
