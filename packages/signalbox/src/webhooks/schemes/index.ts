export {
  createBodyHmacScheme,
  genericScheme,
  githubScheme,
  linearScheme,
  pagerdutyScheme,
  shopifyScheme,
} from "./hmac.ts";
export { createAddressScheme, createApiKeyScheme, createBasicScheme } from "./credentials.ts";
export { discordScheme } from "./discord.ts";
export { gitlabScheme } from "./gitlab.ts";
export { createJwtScheme } from "./jwt.ts";
export { paypalScheme } from "./paypal.ts";
export type { Scheme, SignatureProblem, SignedDelivery } from "./scheme.ts";
export { sendgridScheme } from "./sendgrid.ts";
export { slackScheme } from "./slack.ts";
export { snsScheme, snsUrl } from "./sns.ts";
export { standardScheme, svixScheme } from "./standard-webhooks.ts";
export { stripeScheme } from "./stripe.ts";
export { timestampedScheme } from "./timestamped-hmac.ts";
export { twilioScheme } from "./twilio.ts";
