/** The address of a client that may be behind proxies. */
import type { IncomingHttpHeaders } from "node:http";
import { AddressRanges } from "./address-ranges.ts";
import { isIpAddress } from "./ip-address.ts";

interface ForwardedRequest {
  readonly socket: { readonly remoteAddress?: string | undefined };
  readonly headers: IncomingHttpHeaders;
}

/** An IPv4 address in the notation of IPv6. */
const MAPPED = /^::ffff:(?=\d+\.)/;

/** Finds the client behind proxies that the operator trusts. */
export class ClientAddress {
  readonly #proxies: AddressRanges;

  constructor(trustedProxies: readonly string[]) {
    this.#proxies = new AddressRanges(trustedProxies);
  }

  trusts(peer: string | undefined): boolean {
    return peer !== undefined && this.#proxies.includes(peer.replace(MAPPED, ""));
  }

  /** True if `X-Forwarded-For` has the address of every hop. */
  isNamed({ headers }: Pick<ForwardedRequest, "headers">): boolean {
    const hops = String(headers["x-forwarded-for"] ?? "").split(",");
    return hops.every((hop) => withoutPort(hop.trim()) !== null);
  }

  ofRequest({ socket, headers }: ForwardedRequest): string | undefined {
    const peer = socket.remoteAddress?.replace(MAPPED, "");
    const forwardedFor = headers["x-forwarded-for"];
    return this.of(peer ?? null, forwardedFor === undefined ? "" : String(forwardedFor)) ?? undefined;
  }

  /**
   * `peer` is the address of the connection. A trusted proxy appends the address from which it was called to `X-Forwarded-For`, so the last
   * address in it that is no trusted proxy is the client; the ones before it are what the client claims.
   */
  of(peer: string | null, forwardedFor: string): string | null {
    if (peer === null || !this.#proxies.includes(peer)) return peer;
    let client = peer;
    for (const part of forwardedFor.split(",").toReversed()) {
      const address = withoutPort(part.trim());
      if (address === null) break;
      client = address;
      if (!this.#proxies.includes(address)) break;
    }
    return client;
  }
}

/** Returns null for what is not an address. Some proxies append a port. */
function withoutPort(text: string): string | null {
  const address = text.replace(/^\[(.*)\](?::\d+)?$/, "$1").replace(/^(\d+(?:\.\d+){3}):\d+$/, "$1");
  return isIpAddress(address) ? address.replace(MAPPED, "") : null;
}
