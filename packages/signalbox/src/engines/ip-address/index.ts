/** Which IP addresses are private, and connections that reach public ones only; see README.md. */
export { createPublicLookup, isIpAddress, isLoopbackAddress, isPrivateHost } from "./ip-address.ts";
export { ClientAddress } from "./client-address.ts";
export { AddressRanges, isAddressRange } from "./address-ranges.ts";
