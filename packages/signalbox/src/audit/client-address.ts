/** The address of the client as the audit log records it. */
import { AddressRanges, isIpAddress } from "../engines/ip-address/index.ts";

/** Finds the client behind proxies that the operator trusts. */
export class ClientAddress {
  readonly #proxies: AddressRanges;

  constructor(trustedProxies: readonly string[]) {
    this.#proxies = new AddressRanges(trustedProxies);
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
  return isIpAddress(address) ? address.replace(/^::ffff:(?=\d+\.)/, "") : null;
}
