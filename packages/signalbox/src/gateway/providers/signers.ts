/**
 * Providers whose requests are signed as they are sent: each attempt is signed anew, because signatures and tokens expire.
 *
 * A stored key of such a provider is an access key or a key file. It travels as the `authorization` of the request up to here and is
 * replaced by the signature or the token; every other `authorization` (a Bedrock API key, a signature or an access token of the caller)
 * is sent as it is.
 */
import type { Clock } from "../../core/clock.ts";
import {
  type UpstreamClient,
  type UpstreamExchange,
  UpstreamFailure,
  type UpstreamHandler,
  type UpstreamRequest,
} from "../../engines/relay/index.ts";
import { askServer, FORM } from "./identity/ask-server.ts";
import { type AwsCredentials, parseAwsCredentials, signAws } from "./aws-signature.ts";
import { GOOGLE_TOKEN_URL, GoogleAccessTokens, type PostForm } from "./google-access-token.ts";
import type { ConfiguredProviders, Signers } from "./shared-providers.ts";

const BEDROCK_HOST = /^bedrock-runtime\.([a-z0-9-]+)\./;
const BEARER = "Bearer ";
const NO_BYTES = Buffer.from("");

export function createSigners(
  client: Pick<UpstreamClient, "send">,
  clock: Clock,
  configured: ConfiguredProviders,
): Signers {
  const vertex = configured["google-vertex-ai"];
  const ask = askServer(client);
  const post: PostForm = (url, form) => ask({ url, method: "POST", headers: FORM, body: form });
  const tokens = new GoogleAccessTokens(post, clock, vertex?.tokenUrl ?? GOOGLE_TOKEN_URL);
  const region = configured["aws-bedrock"]?.region;
  return new Map([
    [
      "aws-bedrock",
      (request, handler) => {
        const credentials = parseAwsCredentials(keyOf(request) ?? "");
        if (credentials === null) return client.send(request, handler);
        return sendSigned(
          client,
          handler,
          // Resolves later in any case: the caller has the exchange before its first event.
          new Promise((resolve) => resolve(signBedrock(request, credentials, region, clock.now()))),
        );
      },
    ],
    [
      "google-vertex-ai",
      (request, handler) => {
        const key = keyOf(request);
        if (key?.startsWith("{") !== true) return client.send(request, handler);
        return sendSigned(
          client,
          handler,
          tokens.tokenFor(key).then((token) => withAuthorization(request, ["authorization", BEARER + token])),
        );
      },
    ],
  ]);
}

function signBedrock(
  request: UpstreamRequest,
  credentials: AwsCredentials,
  configuredRegion: string | undefined,
  now: number,
): UpstreamRequest {
  const { origin, body } = request;
  const region = BEDROCK_HOST.exec(origin.hostname)?.[1] ?? configuredRegion;
  if (region === undefined) throw new Error("the region is not known: set providers.aws-bedrock.region");
  if (body.kind === "streamed") throw new Error("the body is too large to be signed");
  const signature = signAws(
    {
      method: request.method,
      host: origin.hostHeader,
      target: request.target,
      body: body.kind === "whole" ? body.bytes : NO_BYTES,
      region,
      service: "bedrock",
      now,
    },
    credentials,
  );
  return withAuthorization(request, signature);
}

/** The text after `Bearer`; null when the request has no such header. */
function keyOf({ headers }: UpstreamRequest): string | null {
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const value = headers[i + 1] ?? "";
    if (headers[i]?.toLowerCase() === "authorization" && value.startsWith(BEARER)) {
      return value.slice(BEARER.length);
    }
  }
  return null;
}

function withAuthorization(request: UpstreamRequest, added: readonly string[]): UpstreamRequest {
  const headers: string[] = [];
  for (let i = 0; i + 1 < request.headers.length; i += 2) {
    const name = request.headers[i] ?? "";
    if (name.toLowerCase() !== "authorization") headers.push(name, request.headers[i + 1] ?? "");
  }
  return { ...request, headers: [...headers, ...added] };
}

/** Sends the request when it is signed; an exchange that is aborted before that is not sent. */
function sendSigned(
  client: Pick<UpstreamClient, "send">,
  handler: UpstreamHandler,
  signed: Promise<UpstreamRequest>,
): UpstreamExchange {
  let exchange: UpstreamExchange | null = null;
  let isAborted = false;
  let isPaused = false;
  signed.then(
    (request) => {
      if (isAborted) return;
      exchange = client.send(request, handler);
      if (isPaused) exchange.pause();
    },
    (cause: unknown) => {
      if (isAborted) return;
      const message = cause instanceof Error ? cause.message : "signing failed";
      handler.onFailure(new UpstreamFailure("unreachable", message, cause));
    },
  );
  return {
    pause() {
      isPaused = true;
      exchange?.pause();
    },
    resume() {
      isPaused = false;
      exchange?.resume();
    },
    abort() {
      isAborted = true;
      exchange?.abort();
    },
  };
}
