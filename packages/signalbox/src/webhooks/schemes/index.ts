export {
  createBodyHmacScheme,
  genericScheme,
  githubScheme,
  linearScheme,
  pagerdutyScheme,
  shopifyScheme,
} from "./hmac.ts";
export { discordScheme } from "./discord.ts";
export { gitlabScheme } from "./gitlab.ts";
export type { Scheme, SignatureProblem, SignedDelivery } from "./scheme.ts";
export { slackScheme } from "./slack.ts";
export { standardScheme, svixScheme } from "./standard-webhooks.ts";
export { stripeScheme } from "./stripe.ts";
export { timestampedScheme } from "./timestamped-hmac.ts";
export { twilioScheme } from "./twilio.ts";
