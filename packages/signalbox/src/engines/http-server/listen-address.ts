/** Where a listener can be reached, and by whom. */
import { BlockList, isIPv6 } from "node:net";

export interface BoundAddress {
  /** As it was configured: an address or a name. */
  readonly host: string;
  /** The address that the host turned out to be. */
  readonly address: string;
  readonly port: number;
}

const loopback = new BlockList();
loopback.addSubnet("127.0.0.0", 8, "ipv4");
loopback.addAddress("::1", "ipv6");

/** True when only programs on this machine reach the listener; a name counts as the address it stands for. */
export function isLoopback({ address }: BoundAddress): boolean {
  // BlockList takes an IPv4 address that is mapped into IPv6 for the IPv4 address itself.
  return loopback.check(address, isIPv6(address) ? "ipv6" : "ipv4");
}

/** An address to open in a browser or give to curl on this machine: "every interface" is no address, so its loopback stands for it. */
export function urlOf({ host, address, port }: BoundAddress): string {
  if (address === "0.0.0.0") return `http://127.0.0.1:${port}`;
  if (address === "::") return `http://[::1]:${port}`;
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}
