/**
 * Classifies IP addresses, and restricts connections to public ones. README.md states the rule and its invariants.
 * See README.md.
 */
import type { LookupAddress, LookupOptions } from "node:dns";
import { BlockList, isIP, type LookupFunction } from "node:net";

/** RFC 6890 and its updates: special-purpose ranges that are not globally reachable, and multicast. */
const V4_RANGES: readonly (readonly [string, number])[] = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  // Not in a special-purpose range, but on Azure it is the virtual machine's host, which serves secrets of the machine.
  ["168.63.129.16", 32],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 4],
  ["240.0.0.0", 4],
];

/**
 * The only part of IPv6 that is assigned to the public internet (RFC 4291, section 2.4). Everything outside is private without being
 * listed: loopback, `::a.b.c.d`, NAT64, local and link-local ranges, multicast, and future reservations.
 */
const V6_PUBLIC: readonly [string, number] = ["2000::", 3];

/**
 * Private ranges inside the public part. Addresses of the transition ranges (6to4, and Teredo in 2001::/23) contain an IPv4 address and
 * would bypass the IPv4 list.
 */
const V6_RANGES: readonly (readonly [string, number])[] = [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
];

/** IPv4-mapped addresses: another notation of IPv4, classified as that IPv4 address. */
const V6_MAPPED: readonly [string, number] = ["::ffff:0:0", 96];

const privateV4 = new BlockList();
for (const [network, prefix] of V4_RANGES) privateV4.addSubnet(network, prefix, "ipv4");
const privateV6 = new BlockList();
for (const [network, prefix] of V6_RANGES) privateV6.addSubnet(network, prefix, "ipv6");
const publicV6 = new BlockList();
publicV6.addSubnet(...V6_PUBLIC, "ipv6");
const mappedV6 = new BlockList();
mappedV6.addSubnet(...V6_MAPPED, "ipv6");

const loopback = new BlockList();
loopback.addSubnet("127.0.0.0", 8, "ipv4");
loopback.addAddress("::1", "ipv6");

export function isIpAddress(text: string): boolean {
  return isIP(text) !== 0;
}

/** True for an address that only programs on this machine can reach; false for text that is not an address. */
export function isLoopbackAddress(address: string): boolean {
  const version = isIP(address);
  // A BlockList classifies an IPv4-mapped address as IPv4.
  return version !== 0 && loopback.check(address, version === 6 ? "ipv6" : "ipv4");
}

/** True for an address that is not on the public internet, and for text that is not an address. */
export function isPrivateAddress(address: string): boolean {
  const [bare = ""] = address.split("%");
  const version = isIP(bare);
  if (version === 0) return true;
  if (version === 4) return privateV4.check(bare, "ipv4");
  // A BlockList compares an IPv4-mapped address with its IPv4 ranges.
  if (mappedV6.check(bare, "ipv6")) return privateV4.check(bare, "ipv6");
  return !publicV6.check(bare, "ipv6") || privateV6.check(bare, "ipv6");
}

/** Resolves a name to all of its addresses; `dns.lookup`, or a replacement in tests. */
export type ResolveAll = (
  hostname: string,
  options: LookupOptions & { all: true },
  callback: (error: Error | null, addresses: LookupAddress[]) => void,
) => void;

/**
 * True for the host of a URL that is private without being resolved: a private address, with or without brackets, or a name that
 * RFC 6761 reserves for this machine.
 */
export function isPrivateHost(hostname: string): boolean {
  const host = hostname.replace(/^\[(.*)\]$/, "$1");
  // A trailing dot makes the name fully qualified; it means the same.
  return isIpAddress(host) ? isPrivateAddress(host) : /(^|\.)localhost\.?$/i.test(host);
}

/** A `lookup` option for connections that fails, with the error of `toError`, for every name with a private address. */
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
