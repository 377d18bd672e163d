/** The configuration file's keys for incoming and outgoing webhooks. */
import { z } from "zod";
import { accountKey } from "./account-key.ts";

const mebibytes = (count: number) => count * 1024 * 1024;

/** `header:x-tenant`, `body:data.object.customer` or `fixed:everyone`. */
const rule = z
  .string()
  .regex(
    /^(header:[a-zA-Z0-9-]+|body:[^.\s]+(\.[^.\s]+)*|fixed:.+)$/,
    "expected header:<name>, body:<path.to.field> or fixed:<value>",
  );
/** The first rule that finds something wins. */
const rules = z.union([rule.transform((one) => [one]), z.array(rule).min(1)]);

export const BUILT_IN_SOURCE_NAMES = [
  "generic",
  "github",
  "stripe",
  "slack",
  "twilio",
  "shopify",
  "standard",
  "svix",
  "gitlab",
  "linear",
  "pagerduty",
  "discord",
] as const;

/** An HMAC over the raw body in one header, for senders that are not built in. */
const customScheme = z.strictObject({
  algorithm: z.enum(["sha1", "sha256", "sha512"]).default("sha256"),
  encoding: z.enum(["hex", "base64"]).default("hex"),
  /** Header that carries the signature. */
  header: z.string().regex(/^[a-zA-Z0-9-]+$/, "expected a header name"),
  /** Text before the digest, e.g. `sha256=`. Default none. */
  prefix: z.string().default(""),
});

const source = z.strictObject({
  /** Name of a built-in source to behave like, or an HMAC of your own. Default: the entry's own name. */
  scheme: z.union([z.enum(BUILT_IN_SOURCE_NAMES), customScheme]).optional(),
  /** For the generic scheme: time and delivery id are signed too, as `X-Timestamp` and `X-Event-Id`. Default false. */
  timestamped: z.boolean().default(false),
  /** Agent that gets the deliveries, kebab-case. Default `webhook-agent`. */
  agent: z.string().min(1).default("webhook-agent"),
  /** Where the entity is found. Default: the scheme's rule. */
  entity: rules.optional(),
  /** How an entity becomes an instance name: `plain` reads well, `reversible` can be turned back. Default `plain`. */
  entityForm: z.enum(["plain", "reversible"]).default("plain"),
  /** Where the event type is found. Default: the scheme's rule. */
  eventType: rules.optional(),
  /** Where the delivery id is found. Default: the scheme's rule. */
  deliveryId: rules.optional(),
  /** Environment variable that holds the secrets. Default `<NAME>_WEBHOOK_SECRET`, for `generic` `WEBHOOK_SECRET`. */
  secretVariable: z
    .string()
    .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "expected the name of an environment variable")
    .optional(),
  /** How far a signed time may be from ours, either way. Default: the scheme's window (300 s, Linear 60 s). */
  toleranceSeconds: z.int().min(1).max(86_400).optional(),
  /** Account that the source, its deliveries and the instances it reaches belong to. Default `default`. */
  account: accountKey,
});

export const webhookKeys = z
  .strictObject({
    /** Bytes of a delivery's body. Default 5 MiB. */
    maxBodyBytes: z.int().min(1).max(mebibytes(100)).default(mebibytes(5)),
    /** Time for a delivery's body to arrive once its headers are here. Default 10 s. */
    bodyTimeoutMs: z.int().min(10).default(10_000),
    /**
     * How long a sender waits for its answer at most. A delivery whose instance takes longer is stored and answered 202, or 503 when it
     * cannot be stored. Default 8 s: the shortest time that common senders wait is 10 s, but for Slack's and Discord's 3 s.
     */
    answerWithinMs: z.int().min(100).max(600_000).default(8000),
    /** Verified deliveries at work at once; more are answered 503. Default 2,000. */
    maxInFlight: z.int().min(1).default(2000),
    /** Bytes of bodies held in memory at once; more are answered 503. Default 64 MiB. */
    maxBufferedBytes: z.int().min(1024).default(mebibytes(64)),
    /** The address providers send to, e.g. `https://hooks.example.com`; Twilio signs it. Default: `listener.publicUrl`, else the request's own Host. */
    publicUrl: z.url({ protocol: /^https?$/ }).optional(),
    /** Deliveries the inspector keeps: so many accepted ones in the database, and as many rejected ones in memory. Default 1,000. */
    keepDeliveries: z.int().min(0).max(100_000).default(1000),
    /** The built-in sources need no entry; entries change them or add others. */
    sources: z
      .record(
        z.string().regex(/^[a-z0-9][a-z0-9_-]{0,63}$/, "expected lower-case letters, digits, _ and -"),
        source,
      )
      .default({}),
  })
  .prefault({});

export const outgoingKeys = z
  .strictObject({
    /** Lets `sendWebhook` reach loopback and private addresses. Default false. */
    allowPrivateHosts: z.boolean().default(false),
  })
  .prefault({});

export type WebhooksConfig = z.output<typeof webhookKeys>;
export type WebhookSourceConfig = z.output<typeof source>;
export type CustomScheme = z.output<typeof customScheme>;
