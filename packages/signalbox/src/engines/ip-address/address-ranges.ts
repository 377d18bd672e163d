/** A list of addresses and CIDR ranges. */
import { BlockList, isIP } from "node:net";

export class AddressRanges {
  readonly #list = new BlockList();

  /** Throws if a range is neither an address nor a CIDR range. */
  constructor(ranges: readonly string[]) {
    for (const range of ranges) {
      const parsed = parseRange(range);
      if (parsed === null) throw new Error(`${range}: neither an address nor a CIDR range`);
      this.#list.addSubnet(parsed.address, parsed.bits, parsed.family);
    }
  }

  includes(address: string): boolean {
    const version = isIP(address);
    return version !== 0 && this.#list.check(address, version === 6 ? "ipv6" : "ipv4");
  }
}

export function isAddressRange(range: string): boolean {
  return parseRange(range) !== null;
}

function parseRange(range: string): { address: string; bits: number; family: "ipv4" | "ipv6" } | null {
  const [address = "", length, ...rest] = range.split("/");
  const version = isIP(address);
  if (version === 0 || address.includes("%") || rest.length > 0) return null;
  const maxBits = version === 6 ? 128 : 32;
  const bits = length === undefined ? maxBits : /^\d{1,3}$/.test(length) ? Number(length) : Infinity;
  return bits > maxBits ? null : { address, bits, family: version === 6 ? "ipv6" : "ipv4" };
}
