export { Accounts } from "./account.ts";
export { Authenticator, bearerText } from "./authenticator.ts";
export { boundGateway, isAllowed, type Principal, principalName } from "./principal.ts";
export { openRootToken, type RootToken } from "./root-token.ts";
export { openSealing } from "./encryption-key.ts";
export { FailureThrottle } from "./failure-throttle.ts";
export { openSecretFile } from "./secret-file.ts";
export { accountRoutes, showToken } from "./routes.ts";
export {
  clearCookie,
  ownOrigin,
  requireOwnHost,
  requireOwnPage,
  SESSION_COOKIE_PREFIX,
  sessionSecrets,
  setCookie,
} from "./session-cookie.ts";
export { SESSION_LIFETIME_MS, Sessions } from "./sessions.ts";
export { Tokens } from "./tokens.ts";
