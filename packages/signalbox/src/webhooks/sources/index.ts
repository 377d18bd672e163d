import { discord } from "./discord.ts";
import { generic } from "./generic.ts";
import { github } from "./github.ts";
import { gitlab } from "./gitlab.ts";
import { linear } from "./linear.ts";
import { pagerduty } from "./pagerduty.ts";
import { paypal } from "./paypal.ts";
import { sendgrid } from "./sendgrid.ts";
import { shopify } from "./shopify.ts";
import { slack } from "./slack.ts";
import { sns } from "./sns.ts";
import type { SourceKind } from "./source-kind.ts";
import { standard, svix } from "./standard.ts";
import { stripe } from "./stripe.ts";
import { twilio } from "./twilio.ts";

export const SOURCE_KINDS: readonly SourceKind[] = [
  generic,
  github,
  stripe,
  slack,
  twilio,
  shopify,
  standard,
  svix,
  gitlab,
  linear,
  pagerduty,
  discord,
  sendgrid,
  paypal,
  sns,
];

export { fieldAt, findFirst, findText, parseRule, type Rule, type VerifiedDelivery } from "./rule.ts";
export type { Sample, SourceKind } from "./source-kind.ts";
