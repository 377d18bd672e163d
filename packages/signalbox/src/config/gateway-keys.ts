/** Keys of the gateway's data plane (`gateway`) and of upstream addresses (`providers`). */
import { z } from "zod";

const megabytes = (count: number) => count * 1024 * 1024;

const accountId = z
  .string()
  .regex(/^(?:\*|[A-Za-z0-9_-]{1,64})$/, 'expected an account id, or "*" for every account');

const httpOrigin = z
  .string()
  .refine(isOrigin, "expected scheme, host and port only, e.g. https://models.example.com");

/** Who may have calls sent with the key in an environment variable, and for a custom provider's key: where to. */
const keyGrant = z.union(
  [z.array(accountId), z.strictObject({ accounts: z.array(accountId), origin: httpOrigin })],
  'expected a list of account ids (or "*"), or {accounts, origin} for a key of a custom provider',
);

export const gatewayKeys = {
  /** Bytes of a call's request body. Default 512 MiB, what the largest file uploads of providers need. */
  maxBodyBytes: z.int().min(1024).default(megabytes(512)),
  /**
   * Bytes of a request body that are kept in memory until the call ends. A larger body is streamed: it can be neither retried nor
   * cached. Default 8 MiB.
   */
  replayBodyBytes: z.int().min(1024).max(megabytes(256)).default(megabytes(8)),
  /**
   * Memory for bodies, all calls together: request bodies until their calls have ended, and what is kept of responses for the log. Default
   * 256 MiB: thousands of conversations at once, or 32 bodies of the largest size that is kept, on a machine with 1 GiB. A call whose body
   * finds no room is answered with 503.
   */
  maxBufferedBytes: z.int().min(65_536).default(megabytes(256)),
  /** A request body that brings less than 1 KiB a second for this long is cut (408). Default 10 s. */
  uploadStallMs: z.int().min(10).default(10_000),
  /** Time to open a connection to a provider. Default 10 s. */
  connectTimeoutMs: z.int().min(10).default(10_000),
  /** Time until the first byte of a provider's response, where the call sets none itself. Default 10 min: reasoning takes long. */
  firstByteTimeoutMs: z.int().min(10).default(600_000),
  /** How long a response may stand still, because the provider sends nothing or the client reads nothing. Default 2 min. */
  stallTimeoutMs: z.int().min(10).default(120_000),
  /** How long an idle connection to a provider is kept. Default 30 s; shorter where the provider says so. */
  upstreamIdleTimeoutMs: z.int().min(1).default(30_000),
  /** Memory for cached responses. Default 64 MiB; 0 switches caching off for every gateway. */
  cacheBytes: z.int().min(0).default(megabytes(64)),
  /** Largest response that is cached. Default 1 MiB. */
  cacheEntryBytes: z.int().min(1024).default(megabytes(1)),
  /**
   * By environment variable: the accounts whose gateways may use it as a provider key, e.g. `{"OPENAI_API_KEY_TEAM_A": ["team-a"]}`; `"*"`
   * is every account. A key of a custom provider also names the origin it may be sent to. Default for a variable without an
   * entry: the account `default`; of a custom provider: none.
   */
  providerKeys: z
    .record(z.string().regex(/^[A-Z][A-Z0-9_]*$/, "expected the name of an environment variable"), keyGrant)
    .default({}),
  /** Whether custom providers may be plain HTTP and live on private or loopback addresses. Default false. */
  allowPrivateCustomProviders: z.boolean().default(false),
};

export const httpUrl = z
  .string()
  .refine(isHttpUrl, "expected an http:// or https:// address without query and credentials");

/** By slug: the address of a built-in provider to use instead, or an OpenAI-shaped provider to add. Default: none. */
export const providerKeys = z
  .record(
    z
      .string()
      .regex(
        /^(?!custom-)[a-z0-9][a-z0-9-]{0,63}$/,
        "expected a slug of lower-case letters, digits and -, not beginning with custom-",
      ),
    z.strictObject({ baseUrl: httpUrl }),
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
