/**
 * Which addresses count as inside: this machine, its private networks, and everything else that is not the public
 * internet. Addresses are judged after parsing or resolving, never by how a host name is spelled.
 */
import { BlockList, isIP } from "node:net";

/** RFC 6890 and its updates: special-purpose ranges that are not globally reachable, plus multicast. */
const V4_RANGES: readonly (readonly [string, number])[] = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  // A public address by its number, but what answers there is the Azure host of this machine, with its secrets.
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
 * The only part of IPv6 that is given out for the public internet (RFC 4291, section 2.4). Everything outside is closed without being
 * listed: loopback, `::a.b.c.d`, NAT64, local and link-local ranges, multicast, and whatever is reserved next.
 */
const V6_PUBLIC: readonly [string, number] = ["2000::", 3];

/**
 * Closed inside the public part. The transition ranges (6to4, and Teredo in 2001::/23) carry an IPv4 address inside and would be a way
 * around the list above.
 */
const V6_RANGES: readonly (readonly [string, number])[] = [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
];

/** IPv4-mapped: another spelling of an IPv4 address, judged as that address. */
const V6_MAPPED: readonly [string, number] = ["::ffff:0:0", 96];

const blockedV4 = new BlockList();
for (const [network, prefix] of V4_RANGES) blockedV4.addSubnet(network, prefix, "ipv4");
const blockedV6 = new BlockList();
for (const [network, prefix] of V6_RANGES) blockedV6.addSubnet(network, prefix, "ipv6");
const publicV6 = new BlockList();
publicV6.addSubnet(...V6_PUBLIC, "ipv6");
const mappedV6 = new BlockList();
mappedV6.addSubnet(...V6_MAPPED, "ipv6");

/** True for an address outside the public internet, and for text that is no address at all. IPv4-mapped IPv6 counts as its IPv4. */
export function isPrivateAddress(address: string): boolean {
  const [bare = ""] = address.split("%");
  const version = isIP(bare);
  if (version === 0) return true;
  if (version === 4) return blockedV4.check(bare, "ipv4");
  // The list compares a mapped address with the IPv4 ranges.
  if (mappedV6.check(bare, "ipv6")) return blockedV4.check(bare, "ipv6");
  return !publicV6.check(bare, "ipv6") || blockedV6.check(bare, "ipv6");
}
