/**
 * The one rule that keeps connections to addresses which strangers choose (custom providers, outgoing webhooks) out of our networks.
 *
 * Invariants:
 * 1. A host is judged before anything is sent: an address, or a name that is local by definition, when it is first seen
 *    (`isPrivateHost`); any other name where the connection resolves it (`createPublicLookup`), so that a second DNS answer cannot
 *    differ from the judged one.
 * 2. One private answer among several refuses the name: which of them a connection would try is not ours to bet on.
 */
import type { LookupAddress, LookupOptions } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import { isPrivateAddress } from "./private-address.ts";

/** Asks for every address of a name; `dns.lookup`, or what a test has instead. */
export type ResolveAll = (
  hostname: string,
  options: LookupOptions & { all: true },
  callback: (error: Error | null, addresses: LookupAddress[]) => void,
) => void;

/** Returns true for an IPv4 or IPv6 address without brackets. */
export function isIpAddress(text: string): boolean {
  return isIP(text) !== 0;
}

/** Whether a host of a URL is known to be inside without asking anyone; brackets around an IPv6 address do not matter. */
export function isPrivateHost(hostname: string): boolean {
  const host = hostname.replace(/^\[(.*)\]$/, "$1");
  if (isIP(host) !== 0) return isPrivateAddress(host);
  // RFC 6761: these names mean this machine, whatever a resolver says. A trailing dot is part of a full name.
  return /(^|\.)localhost\.?$/i.test(host);
}

/** A look-up for a connection that hands it only addresses it has judged. */
export function createPublicLookup(
  resolve: ResolveAll,
  toError: (hostname: string) => Error,
): LookupFunction {
  return (hostname, options, callback) => {
    if (isPrivateHost(hostname)) return callback(toError(hostname), "", 0);
    return resolve(hostname, { ...options, all: true }, (error, addresses) => {
      if (error !== null) return callback(error, "", 0);
      const [first] = addresses;
      if (first === undefined || addresses.some(({ address }) => isPrivateAddress(address))) {
        return callback(toError(hostname), "", 0);
      }
      if (options.all === true) return callback(null, addresses);
      return callback(null, first.address, first.family);
    });
  };
}
