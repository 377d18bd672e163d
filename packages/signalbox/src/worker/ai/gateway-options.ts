/** The gateway options of `AI.run` and `AI.gateway(id).run` as the headers that the gateway reads. */

export interface GatewayOptions {
  readonly id?: string;
  readonly skipCache?: boolean;
  readonly cacheTtl?: number;
  readonly cacheKey?: string;
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly collectLog?: boolean;
  readonly eventId?: string;
  readonly requestTimeoutMs?: number;
  readonly retries?: {
    readonly maxAttempts?: number;
    readonly retryDelayMs?: number;
    readonly backoff?: string;
  };
}

/** `agent` is the object that makes the call; it is the first key, because the gateway keeps only a few. */
export function toGatewayHeaders(options: GatewayOptions, agent: string | null): Record<string, string> {
  const metadata = {
    ...(agent === null ? {} : { agent }),
    ...options.metadata,
    ...(agent === null ? {} : { agent }),
  };
  const values: Record<string, string | number | boolean | null | undefined> = {
    "skip-cache": options.skipCache,
    "cache-ttl": options.cacheTtl,
    "cache-key": options.cacheKey,
    "collect-log": options.collectLog,
    "event-id": options.eventId,
    "request-timeout": options.requestTimeoutMs,
    "max-attempts": options.retries?.maxAttempts,
    "retry-delay": options.retries?.retryDelayMs,
    backoff: options.retries?.backoff,
    metadata: Object.keys(metadata).length === 0 ? undefined : toHeaderText(JSON.stringify(metadata)),
  };
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(values))
    if (value !== undefined && value !== null) headers[`gw-aig-${name}`] = String(value);
  return headers;
}

/** Header values are bytes, and Node writes text as Latin-1: the bytes of UTF-8, one character each. */
function toHeaderText(text: string): string {
  return Buffer.from(text, "utf8").toString("latin1");
}
