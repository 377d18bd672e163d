export { createPublicLookup, isPrivateHost } from "./public-host.ts";
