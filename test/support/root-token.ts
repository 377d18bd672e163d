/** Separate from `test-server.ts`, so that tests with server processes do not load the service into their own process. */
export const ROOT_TOKEN = "root-token-of-the-test-server";
