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
 * The transition ranges (NAT64, 6to4, Teredo) carry an IPv4 address inside and would be a way around the list above, so they are
 * closed as a whole.
 */
const V6_RANGES: readonly (readonly [string, number])[] = [
  ["::", 128],
  ["::1", 128],
  ["64:ff9b::", 96],
  ["64:ff9b:1::", 48],
  ["100::", 64],
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
  ["5f00::", 16],
  ["fc00::", 7],
  ["fe80::", 10],
  ["fec0::", 10],
  ["ff00::", 8],
];

const blocked = new BlockList();
for (const [network, prefix] of V4_RANGES) blocked.addSubnet(network, prefix, "ipv4");
for (const [network, prefix] of V6_RANGES) blocked.addSubnet(network, prefix, "ipv6");

/** True for an address outside the public internet, and for text that is no address at all. IPv4-mapped IPv6 counts as its IPv4. */
export function isPrivateAddress(address: string): boolean {
  const [bare = ""] = address.split("%");
  const version = isIP(bare);
  if (version === 0) return true;
  return blocked.check(bare, version === 6 ? "ipv6" : "ipv4");
}
