export { auditActor } from "./audit-actor.ts";
export { Accounts } from "./account.ts";
export { AllowRules } from "./allow-rules.ts";
export { Authenticator, bearerText } from "./authenticator.ts";
export { boundGateway, isAllowed, isRootToken, type Principal, principalName } from "./principal.ts";
export { openRootToken, type RootToken } from "./root-token.ts";
export { MasterKeys } from "./master-keys.ts";
export { openSealing } from "./encryption-key.ts";
export {
  type GuardrailRule,
  guardrailRules,
  isJudged,
  type JudgedRule,
  PII_KINDS,
  SECRET_KINDS,
} from "./guardrail-rule.ts";
export { FailureThrottle } from "./failure-throttle.ts";
export { openSecretFile } from "./secret-file.ts";
export { ownOrigin, SESSION_COOKIE_PREFIX } from "./session-cookie.ts";
export { BrowserSessions } from "./browser-sessions.ts";
export { LoginCodes } from "./login-codes.ts";
export { Sessions } from "./sessions.ts";
export { maySee } from "./token-bounds.ts";
export { newTokenFields, showToken, toNewToken, warnOfOpenGateways } from "./token-schema.ts";
export type { Token } from "./token.ts";
export {
  budgetId,
  MAX_BUDGET,
  type MetadataValue,
  RESERVED_METADATA_PREFIX,
  type RouteKind,
  stampOf,
  type TokenBudget,
  type TokenPolicy,
  type TokenRateLimit,
} from "./token-policy.ts";
export { Tokens } from "./tokens.ts";
