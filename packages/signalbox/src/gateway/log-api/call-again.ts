/** A stored call as a request that can be sent again: to the same provider, or to a unified door with another model. */
import { SignalboxError } from "@signalbox/protocol";
import type { CallRow, StoredBody } from "../../engines/call-log/index.ts";

export interface CallAgain {
  /** Path below the origin of the gateway. */
  readonly target: string;
  readonly method: string;
  readonly contentType: string;
  readonly body: Buffer | null;
}

/** Endpoints of the unified doors by the dialect of the client. */
const DOORS: Readonly<Record<string, string>> = {
  chat: "chat/completions",
  messages: "messages",
  responses: "responses",
};
const ENDPOINTS = [...Object.values(DOORS), "embeddings"];

/** The request as it was sent. A call through a unified door goes through the door again. */
export function sameCall(row: CallRow, request: StoredBody | null): CallAgain {
  const base = `/v1/${encodeURIComponent(row.accountId)}/${encodeURIComponent(row.gatewayId)}`;
  return {
    target: `${base}/${pathOf(row)}`,
    method: row.method,
    contentType: row.requestContentType === "" ? "application/json" : row.requestContentType,
    body: request === null ? null : Buffer.from(request.bytes),
  };
}

function pathOf({ clientDialect, requestType, provider, model, path }: CallRow): string {
  if (clientDialect === GEMINI) {
    if (requestType !== "generate_content") throw conflict("calls of this method are not repeated");
    return geminiPath(`${provider}/${model}`);
  }
  const door = clientDialect === null ? undefined : DOORS[clientDialect];
  return door === undefined ? `${provider}/${path}` : `compat/${door}`;
}

/** Gemini's API has the model in the path. */
const GEMINI = "gemini";

function geminiPath(model: string): string {
  return `compat/v1beta/models/${encodeURIComponent(model)}:generateContent`;
}

/** The request with another model, `provider/model`, at the unified door of its dialect. The answer is not streamed. */
export function callWithModel(row: CallRow, request: StoredBody | null, model: string): CallAgain {
  const base = `/v1/${encodeURIComponent(row.accountId)}/${encodeURIComponent(row.gatewayId)}`;
  const isGemini = row.clientDialect === GEMINI && row.requestType === "generate_content";
  const endpoint = isGemini
    ? geminiPath(model)
    : row.clientDialect === null
      ? ENDPOINTS.find((known) => row.path === known || row.path.endsWith(`/${known}`))
      : DOORS[row.clientDialect];
  if (endpoint === undefined) throw conflict("this kind of call cannot be sent to another model");
  const body = parseBody(request);
  delete body["stream"];
  delete body["stream_options"];
  return {
    target: isGemini ? `${base}/${endpoint}` : `${base}/compat/${endpoint}`,
    method: "POST",
    contentType: "application/json",
    body: Buffer.from(JSON.stringify(isGemini ? body : { ...body, model })),
  };
}

function parseBody(request: StoredBody | null): Record<string, unknown> {
  if (request === null) throw conflict("its request body is not stored");
  if (!request.isComplete) throw conflict("only the beginning of its request body is stored");
  try {
    const value = JSON.parse(Buffer.from(request.bytes).toString("utf8")) as unknown;
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return { ...value };
  } catch {
    // Not JSON.
  }
  throw conflict("its request body is not a JSON object");
}

/** A shell command. Credentials are variables: none is stored, and none is shown. */
export function toCurl({ target, method, contentType, body }: CallAgain, origin: string): string {
  const lines = [`curl -X ${method} ${quote(origin + target)}`];
  lines.push(`-H ${quote(`content-type: ${contentType}`)}`);
  lines.push('-H "gw-aig-authorization: Bearer $SIGNALBOX_TOKEN"');
  lines.push('-H "authorization: Bearer $PROVIDER_API_KEY"');
  if (body !== null && body.length > 0) lines.push(bodyOption(body));
  return `${lines.join(" \\\n  ")}\n`;
}

/** A longer command line is refused by common shells. */
const MAX_INLINE_BYTES = 100_000;

function bodyOption(body: Buffer): string {
  const text = body.toString("utf8");
  const isText = Buffer.from(text).equals(body) && !text.includes("\0");
  if (body.length > MAX_INLINE_BYTES || !isText) return "--data-binary @request-body";
  return `--data-binary ${quote(text)}`;
}

/** Single quotes keep everything but single quotes. */
function quote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

function conflict(reason: string): SignalboxError {
  return new SignalboxError("conflict", { message: `The call cannot be replayed: ${reason}` });
}
