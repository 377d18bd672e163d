/**
 * Takes `/v1/{account_id}/{gateway_id}/{provider}/{path}` apart. Account, gateway and provider are decoded; the provider's path stays
 * as it was sent, since the provider judges it.
 *
 * A path with a `.` or `..` segment, however written, is refused: behind a base address it could name a place outside of it.
 */
import { SignalboxError } from "@signalbox/protocol";

export interface GatewayPath {
  readonly accountId: string;
  readonly gatewayId: string;
  /** Null on the universal endpoint, which names its providers in the body. */
  readonly provider: string | null;
  /** Raw, without leading slash. */
  readonly path: string;
}

/** Decoded separators count too: what a server behind us might do with `%2e%2e%2f` or `..\` is not ours to find out. */
const DOT_SEGMENT = /(?:^|[/\\])\.{1,2}(?:[/\\]|$)/;

export function parseGatewayPath(path: string): GatewayPath {
  // The first segment is `v1`, but it may be spelled otherwise (`v%31`): it ends at its slash and not after three characters.
  const start = endOfSegment(path, 1) + 1;
  const accountEnd = endOfSegment(path, start);
  const gatewayEnd = endOfSegment(path, accountEnd + 1);
  const accountId = decode(path.slice(start, accountEnd));
  const gatewayId = decode(path.slice(accountEnd + 1, gatewayEnd));
  if (accountId === "" || gatewayId === "") throw new SignalboxError("gateway_not_found");
  if (gatewayEnd + 1 >= path.length) return { accountId, gatewayId, provider: null, path: "" };
  const providerEnd = endOfSegment(path, gatewayEnd + 1);
  const rest = path.slice(providerEnd + 1);
  checkProviderPath(rest);
  return { accountId, gatewayId, provider: decode(path.slice(gatewayEnd + 1, providerEnd)), path: rest };
}

/** Throws for a path that could leave the provider's base address. */
export function checkProviderPath(path: string): void {
  if (!path.includes(".") && !path.includes("%")) return;
  if (DOT_SEGMENT.test(path.includes("%") ? decode(path) : path)) {
    throw new SignalboxError("gateway_malformed_request", {
      message: "The path must not contain . or .. segments",
    });
  }
}

function endOfSegment(path: string, from: number): number {
  const end = path.indexOf("/", from);
  return end === -1 ? path.length : end;
}

function decode(text: string): string {
  if (!text.includes("%")) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    throw new SignalboxError("gateway_malformed_request", {
      message: "The path is not valid percent-encoded UTF-8",
    });
  }
}
