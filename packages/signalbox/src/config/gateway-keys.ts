/** The sections `gateway` and `providers` of the configuration file. */
import { z } from "zod";

const megabytes = (count: number) => count * 1024 * 1024;

const accountId = z
  .string()
  .regex(/^(?:\*|[A-Za-z0-9_-]{1,64})$/, 'expected an account id, or "*" for every account');

const httpOrigin = z
  .string()
  .refine(isOrigin, "expected scheme, host and port only, e.g. https://models.example.com");

/** The accounts that may use the key in an environment variable; for a custom provider also the origin that receives the key. */
const keyGrant = z.union(
  [
    z.array(accountId),
    z.strictObject({
      /** Ids of accounts; `"*"` is all of them. */
      accounts: z.array(accountId),
      /** The address of the custom provider that may receive the key: scheme, host and port. */
      origin: httpOrigin,
    }),
  ],
  'expected a list of account ids (or "*"), or {accounts, origin} for a key of a custom provider',
);

export const gatewayKeys = {
  /** Maximum size of a request body. Default 512 MiB, the largest file upload of the supported providers. */
  maxBodyBytes: z.int().min(1024).default(megabytes(512)),
  /**
   * Maximum size of a request body that is buffered until the call ends. A larger body is streamed and can be neither retried nor cached.
   * Default 8 MiB.
   */
  replayBodyBytes: z.int().min(1024).max(megabytes(256)).default(megabytes(8)),
  /**
   * Memory limit for the buffered bodies of all calls: request bodies, answers that are translated, and the parts of responses that are stored in
   * the log. One account, or all callers without a token, get two thirds of it. A call above the limit is refused with 503. Default 256 MiB:
   * thousands of conversations, or 32 buffered bodies of maximum size.
   */
  maxBufferedBytes: z.int().min(65_536).default(megabytes(256)),
  /** A request body that is slower than 1 KiB/s for this time is refused with 408. Default 10 s. */
  uploadStallMs: z.int().min(10).default(10_000),
  /** Time limit for connecting to a provider. Default 10 s. */
  connectTimeoutMs: z.int().min(10).default(10_000),
  /** Time limit for the first byte of a provider's response, unless the call sets one. Default 10 min, for reasoning models. */
  firstByteTimeoutMs: z.int().min(10).default(600_000),
  /**
   * Time limit without progress of a response, because the provider sends or the client reads no data. Default 1 min; a call may set
   * another limit with `gw-aig-stall-timeout`.
   */
  stallTimeoutMs: z.int().min(10).default(60_000),
  /** Time after which an idle connection to a provider is closed. Default 30 s, or less if the provider announces it. */
  upstreamIdleTimeoutMs: z.int().min(1).default(30_000),
  /** Memory limit of cached responses, each of at most 1 MiB. Default 64 MiB; 0 disables caching for all gateways. */
  cacheBytes: z.int().min(0).default(megabytes(64)),
  /**
   * By environment variable: the accounts whose gateways may use it as a provider key, e.g. `{"OPENAI_API_KEY_TEAM_A": ["team-a"]}`; `"*"`
   * is all accounts. The key of a custom provider also needs the origin that receives it. Default for a variable without an entry: the
   * account `default`; for a custom provider: none.
   */
  providerKeys: z
    .record(
      z
        .string()
        .regex(
          /^(?:[A-Z][A-Z0-9_]*|file:\/\S+)$/,
          "expected the name of an environment variable, or file: and the path of a file",
        ),
      keyGrant,
    )
    .default({}),
  /**
   * Asks OpenAI-shaped providers for the usage of chat streams whose callers do not, and removes the extra event from the stream. Default
   * true; without it the usage of such a stream is estimated.
   */
  injectStreamUsage: z.boolean().default(true),
  /**
   * Names of models at the unified doors, e.g. `{"smart": "anthropic/claude-opus-5", "claude-*": "aws-bedrock/us.anthropic.*"}`. In a name `*`
   * is any text; in a target it is the requested name, without a provider before `/`. An exact name precedes a pattern, and patterns are
   * tried in their order. A target may be a route, `dynamic/{route}`. Default: none; the names of the large makers (`claude-*`, `gpt-*`,
   * `gemini-*`, …) mean their own providers.
   */
  models: z
    .record(
      z.string().min(1).max(256),
      z.string().regex(/^(?:@cf\/|[a-z0-9][a-z0-9-]*\/).+$/, 'expected "provider/model"'),
    )
    .default({}),
  /** Models that judge for the setting `guardrails` of gateways, as `provider/model`. They are called with stored keys. */
  guardrails: z
    .strictObject({
      /** Judges the categories S1 to S13: a model of the kind Llama Guard. */
      safetyModel: z
        .string()
        .regex(/^[a-z0-9][a-z0-9-]*\/.+$/, 'expected "provider/model"')
        .default("workers-ai/@cf/meta/llama-guard-3-8b"),
      /** Judges P1, prompt injection: a model of the kind Prompt Guard. */
      injectionModel: z
        .string()
        .regex(/^[a-z0-9][a-z0-9-]*\/.+$/, 'expected "provider/model"')
        .default("groq/meta-llama/llama-prompt-guard-2-86m"),
    })
    .prefault({}),
  /** The auto router, which is the model `cloudflare/auto` (or `auto`) at the unified doors. */
  auto: z
    .strictObject({
      /** Models to choose from, as `provider/model`, from the simplest to the strongest. Default: none; callers name some in `gw-aig-allowed-models`. */
      models: z
        .array(z.string().regex(/^(?:@cf\/|[a-z0-9][a-z0-9-]*\/).+$/, 'expected "provider/model"'))
        .max(20)
        .default([]),
    })
    .prefault({}),
  /**
   * By host name: the gateway that it stands for, as `account/gateway`, e.g. `{"ai.example.com": "default/main"}`. All paths of the host are below the gateway
   * (`https://ai.example.com/openai/…`, `/compat/…`, `/v1/messages`), and nothing else of the service is there. Default: none.
   */
  hosts: z
    .record(
      z
        .string()
        .regex(
          /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/,
          "expected a host name in lower case, without a port",
        ),
      z.string().regex(/^[A-Za-z0-9_-]{1,64}\/[A-Za-z0-9_-]{1,64}$/, 'expected "account/gateway"'),
    )
    .default({}),
  /** Provider keys may name files directly in this folder (`file:/run/secrets/openai_api_key`). Default `/run/secrets`. */
  secretFolder: z
    .string()
    .regex(/^\/.*[^/]$/, "expected an absolute path without a slash at its end")
    .default("/run/secrets"),
  /** Realtime sessions: WebSockets between a client and a provider. */
  realtime: z
    .strictObject({
      /** Sessions at a time, of which one account gets two thirds; a further one is refused with 503. Default 1000. */
      maxSessions: z.int().min(0).default(1000),
      /** Maximum size of a message, in both directions; a larger one closes the session with 1009. Default 16 MiB, OpenAI's own limit. */
      maxMessageBytes: z.int().min(1024).max(megabytes(256)).default(megabytes(16)),
      /** A session is closed after this time. Default and maximum 60 min, the limit of OpenAI and of all calls. */
      maxSessionMs: z.int().min(100).max(3_600_000).default(3_600_000),
      /** A session without a message in either direction is closed after this time. Default 10 min. */
      idleTimeoutMs: z.int().min(100).default(600_000),
    })
    .prefault({}),
  /** Allows plain HTTP, private and loopback addresses for custom providers. Default false. */
  allowPrivateCustomProviders: z.boolean().default(false),
};

export const httpUrl = z
  .string()
  .refine(isHttpUrl, "expected an http:// or https:// address without query and credentials");

const placeName = z
  .string()
  .regex(/^[a-z0-9][a-z0-9.:-]{0,62}$/, "expected lower-case letters, digits and -");

/** By slug: another address of a built-in provider, or an additional OpenAI-compatible provider. Default: none. */
export const providerKeys = z
  .record(
    z
      .string()
      .regex(
        /^(?!custom-)[a-z0-9][a-z0-9-]{0,63}$/,
        "expected a slug of lower-case letters, digits and -, not beginning with custom-",
      ),
    z.strictObject({
      /** Address before the path of the provider's API. Required for an additional provider; loopback and private addresses are allowed. */
      baseUrl: httpUrl.optional(),
      /** Formats that the provider speaks, the preferred one first, for the unified doors. */
      dialects: z
        .array(z.enum(["chat", "responses", "messages", "gemini"]))
        .min(1)
        .optional(),
      /** Region of Amazon Bedrock, location of Google Vertex AI (default `global`). */
      region: placeName.optional(),
      /** Project of Google Vertex AI. */
      project: placeName.optional(),
      /** Where Google Vertex AI's access tokens are requested. Default: Google's address. */
      tokenUrl: httpUrl.optional(),
    }),
  )
  .default({});

function isHttpUrl(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : null;
  return (
    url !== null &&
    (url.protocol === "http:" || url.protocol === "https:") &&
    url.search === "" &&
    url.hash === "" &&
    url.username === "" &&
    url.password === ""
  );
}

function isOrigin(text: string): boolean {
  return isHttpUrl(text) && new URL(text).pathname === "/";
}
