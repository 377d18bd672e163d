/**
 * The paths of the unified doors, which take the requests of a provider's SDK for models of any provider:
 *
 *   /v1/{account}/{gateway}/compat/{endpoint}       errors in the gateway's own format
 *   /v1/{endpoint}                                  the account `default`; the gateway by header
 *   /accounts/{account}/ai/v1/{endpoint}            the gateway by header; also below /client/v4
 *   /accounts/{account}/ai/run                      `{model, input}`
 *   /v1beta/models/{model}:{method}                 Gemini's methods, which name the model in the path; the gateway by header
 *
 * Below `compat`, an endpoint may have `v1/` or `v1beta/` before it: the SDKs of Anthropic and Google add it to their base address.
 */
import { SignalboxError } from "@signalbox/protocol";
import { DEFAULT_ACCOUNT } from "../../core/default-account.ts";
import type { ErrorDialect } from "../../http/render-error.ts";
import { checkProviderPath, decodePath } from "../plan/forwarded-request.ts";
import type { ModelRequest } from "../plan/model-request.ts";
import { MODEL_ENDPOINTS } from "../plan/universal-step.ts";

/** Who gets a request that names neither a model nor a provider: the paths are those of OpenAI's SDK. */
export const DEFAULT_PROVIDER = "openai";

export type DoorEndpoint =
  | ModelRequest["endpoint"]
  | "count_tokens"
  | "models"
  | "run"
  /** Of a model, without translation: images, sound, rankings. */
  | "passed"
  /** What a provider stores: files, batches, responses. */
  | "stored";

export interface DoorPath {
  readonly accountId: string;
  /** Null when a header names the gateway. */
  readonly gatewayId: string | null;
  readonly endpoint: DoorEndpoint;
  /** The model that the path names; null when it names none. */
  readonly model: string | null;
  /** Below the door, as sent, without a version before it. */
  readonly rest: string;
  /** Of the endpoint `gemini`. */
  readonly method: GeminiMethod | null;
  /** Below `v1beta`: lists are in Google's format. */
  readonly isGoogle: boolean;
  readonly errorDialect: ErrorDialect;
}

/** Methods of a model in Gemini's API. */
export const GEMINI_METHODS = [
  "generateContent",
  "streamGenerateContent",
  "countTokens",
  "embedContent",
  "batchEmbedContents",
] as const;
type GeminiMethod = (typeof GEMINI_METHODS)[number];

const VERSION = "v1/";
const GOOGLE_VERSION = "v1beta/";
const GEMINI_CALL = new RegExp(`^models/(.+):(${GEMINI_METHODS.join("|")})$`);

const ENDPOINTS: ReadonlyMap<string, DoorEndpoint> = new Map<string, DoorEndpoint>([
  ...MODEL_ENDPOINTS,
  ["messages/count_tokens", "count_tokens"],
  ["models", "models"],
]);
const PASSED: ReadonlySet<string> = new Set([
  "audio/speech",
  "audio/transcriptions",
  "audio/translations",
  "completions",
  "images/edits",
  "images/generations",
  "images/variations",
  "moderations",
  "rerank",
]);
const STORED =
  /^(?:files(?:\/[\w.-]+(?:\/content)?)?|(?:messages\/)?batches(?:\/[\w.-]+(?:\/(?:cancel|results))?)?|responses\/[\w.-]+(?:\/(?:cancel|input_items))?)$/;
const MODELS = "models/";
const RUN = "run/";

/** The paths below `/accounts` that belong to the doors. */
export const ACCOUNT_DOORS = /^(?:\/client\/v4)?\/accounts\/[^/]+\/ai\/(?:v1\/|run(?:\/|$))/;

/** A path after `/v1/` whose first segment is one of `DOOR_WORDS`. */
export function parseBareDoor(rest: string): DoorPath {
  const found = toEndpoint(rest);
  return {
    accountId: DEFAULT_ACCOUNT,
    gatewayId: null,
    ...found,
    errorDialect: sdkDialect(found),
  };
}

/** A path after `/v1beta/`. */
export function parseGoogleDoor(rest: string): DoorPath {
  const found = toGoogleEndpoint(rest);
  return { accountId: DEFAULT_ACCOUNT, gatewayId: null, ...found, errorDialect: "gemini" };
}

export function parseCompatDoor(accountId: string, gatewayId: string, rest: string): DoorPath {
  const found = rest.startsWith(GOOGLE_VERSION)
    ? toGoogleEndpoint(rest.slice(GOOGLE_VERSION.length))
    : toEndpoint(rest.startsWith(VERSION) ? rest.slice(VERSION.length) : rest);
  return { accountId, gatewayId, ...found, errorDialect: "gateway" };
}

/** A path that matches `ACCOUNT_DOORS`. */
export function parseAccountDoor(path: string): DoorPath {
  const [, accountId = "", rest = ""] = /\/accounts\/([^/]+)\/ai\/(.*)$/.exec(path) ?? [];
  const account = { accountId: decodePath(accountId), gatewayId: null };
  if (!rest.startsWith(VERSION)) {
    const model = rest.startsWith(RUN) ? decodePath(rest.slice(RUN.length)) : null;
    return { ...account, ...PLAIN, endpoint: "run", model, rest, errorDialect: "run" };
  }
  const found = toEndpoint(rest.slice(VERSION.length));
  return { ...account, ...found, errorDialect: sdkDialect(found) };
}

type Found = Omit<DoorPath, "accountId" | "gatewayId" | "errorDialect">;

const PLAIN = { model: null, method: null, isGoogle: false };

/** Throws `not_found`. */
function toEndpoint(rest: string): Found {
  if (rest.startsWith(MODELS)) return toModelEndpoint(rest);
  const known = ENDPOINTS.get(rest);
  if (known !== undefined) return { ...PLAIN, endpoint: known, rest };
  if (PASSED.has(rest)) return { ...PLAIN, endpoint: "passed", rest };
  if (!STORED.test(rest)) throw unknownEndpoint(rest);
  checkProviderPath(rest);
  return { ...PLAIN, endpoint: "stored", rest };
}

function toModelEndpoint(rest: string): Found {
  const [, model, method] = GEMINI_CALL.exec(rest) ?? [];
  if (model !== undefined) {
    return {
      ...PLAIN,
      endpoint: "gemini",
      model: decodePath(model),
      method: method as GeminiMethod,
      rest,
    };
  }
  return { ...PLAIN, endpoint: "models", model: decodePath(rest.slice(MODELS.length)), rest };
}

function toGoogleEndpoint(rest: string): Found {
  if (rest !== "models" && !rest.startsWith(MODELS)) throw unknownEndpoint(rest);
  return { ...toEndpoint(rest), isGoogle: true };
}

function unknownEndpoint(rest: string): SignalboxError {
  return new SignalboxError("not_found", {
    message: `There is no endpoint ${rest.slice(0, 64)} here. ${KNOWN_PATHS}`,
  });
}

/** The endpoints below `/v1`. */
export const DOOR_ENDPOINTS: readonly string[] = [
  ...ENDPOINTS.keys(),
  ...PASSED,
  "files",
  "batches",
  "messages/batches",
  "responses/{id}",
];

/** What exists below `/v1`, for callers of a path that does not. */
export const KNOWN_PATHS = `Endpoints: ${DOOR_ENDPOINTS.join(", ")}; /v1beta/models/{model}:generateContent and the other methods of Gemini. All other paths of a provider are below /v1/{account_id}/{gateway_id}/{provider}/, for example /v1/default/default/openai/`;

function sdkDialect({ endpoint, rest }: Found): ErrorDialect {
  if (endpoint === "gemini") return "gemini";
  const isAnthropic = endpoint === "messages" || endpoint === "count_tokens" || rest.startsWith("messages/");
  return isAnthropic ? "anthropic" : "openai";
}
