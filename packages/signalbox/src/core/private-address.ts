/** Which IP addresses are inside somebody's network: not reachable, or not meant to be reached, from the public internet. */
import { BlockList, isIP } from "node:net";

const inside = new BlockList();
// IPv4: RFC 6890 special-purpose blocks.
for (const [network, prefix] of [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["224.0.0.0", 4],
  ["240.0.0.0", 4],
] as const) {
  inside.addSubnet(network, prefix, "ipv4");
}
for (const [network, prefix] of [
  ["::", 128],
  ["::1", 128],
  ["64:ff9b::", 96],
  ["fc00::", 7],
  ["fe80::", 10],
  ["ff00::", 8],
] as const) {
  inside.addSubnet(network, prefix, "ipv6");
}

/** True for an address that is not public; text that is no IP address is false. */
export function isPrivateAddress(address: string): boolean {
  const family = isIP(address);
  if (family === 0) return false;
  // BlockList judges an IPv4-mapped IPv6 address by the IPv4 rules.
  return inside.check(address, family === 4 ? "ipv4" : "ipv6");
}
