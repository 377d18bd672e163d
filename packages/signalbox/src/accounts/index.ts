export { type Account, Accounts } from "./account.ts";
export { Authenticator, bearerText } from "./authenticator.ts";
export { isAllowed, type Principal, principalName } from "./principal.ts";
export { openRootToken, type RootToken } from "./root-token.ts";
export { accountRoutes, showToken } from "./routes.ts";
export type { Token } from "./token.ts";
export { Tokens } from "./tokens.ts";
