export { createPublicLookup, isIpAddress, isPrivateHost } from "./public-host.ts";
