/**
 * A provider as data: where its API lives, how a path below `/v1/{account}/{gateway}/{slug}/` becomes a path of that API, which
 * headers carry its credential, and which field names its usage figures have. Adding one is a line in a family's table.
 */
import type {
  Origin,
  UpstreamExchange,
  UpstreamHandler,
  UpstreamRequest,
  UsageDialect,
} from "../../engines/relay/index.ts";

export interface Provider {
  readonly slug: string;
  readonly usage: UsageDialect;
  /** Headers that carry the caller's credential, lower-case; the first is where a stored key goes. */
  readonly credentialHeaders: readonly string[];
  /** Puts a stored key into the form the first credential header wants. */
  readonly toCredential: (key: string) => string;
  /** Header lines that go with every request (`name: value\r\n`); those of a custom provider. */
  readonly extraHeaderLines: string;
  /** Where a path goes; throws `gateway_malformed_request` for one that names no place. */
  locate(path: string, accountId: string): Location;
  /** Model named by the path, for APIs that put it there; null when the body names it. */
  modelInPath(path: string): string | null;
  /** Present when the provider answers inside the process. */
  readonly answer?: (request: UpstreamRequest, handler: UpstreamHandler) => UpstreamExchange;
}

export interface Location {
  readonly origin: Origin;
  /** Path without query, starting with `/`. */
  readonly path: string;
}

/** What a family's table says of one provider; `createProvider` turns it into a `Provider`. */
export interface ProviderDefinition {
  readonly slug: string;
  /**
   * Base address, path included. Its host may hold `{0}`, filled by the path rule from the request's path (a region, a resource).
   */
  readonly baseUrl: string;
  readonly usage?: UsageDialect;
  readonly credentialHeaders?: readonly string[];
  readonly toCredential?: (key: string) => string;
  readonly rule: PathRule;
  readonly modelInPath?: (path: string) => string | null;
}

/** Turns the path after the provider segment into a path after the base address, and a value for `{0}` in the host. */
export type PathRule = (path: string, accountId: string) => RoutedPath;

export interface RoutedPath {
  readonly path: string;
  readonly hostPart?: string;
}

export function bearer(key: string): string {
  return `Bearer ${key}`;
}

export function bare(key: string): string {
  return key;
}
