/** The sections `webhooks` and `outgoing` of the configuration file. */
import { z } from "zod";
import { isAddressRange } from "../engines/ip-address/index.ts";
import { accountKey } from "./account-key.ts";
import { configuredRoute } from "./webhook-route-keys.ts";

const mebibytes = (count: number) => count * 1024 * 1024;

/** `header:x-tenant`, `body:data.object.customer` or `fixed:everyone`. */
const rule = z
  .string()
  .regex(
    /^(header:[a-zA-Z0-9-]+|body:[^.\s]+(\.[^.\s]+)*|fixed:.+)$/,
    "expected header:<name>, body:<path.to.field> or fixed:<value>",
  );
/** The first rule with a result applies. */
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
  "sendgrid",
  "paypal",
  "sns",
] as const;

/** An HMAC of the raw body in one header, for senders without a built-in source. */
const customScheme = z.strictObject({
  /** Hash function. Default `sha256`. */
  algorithm: z.enum(["sha1", "sha256", "sha512"]).default("sha256"),
  /** Form of the digest in the header. Default `hex`. */
  encoding: z.enum(["hex", "base64"]).default("hex"),
  /** Header with the signature. */
  header: z.string().regex(/^[a-zA-Z0-9-]+$/, "expected a header name"),
  /** Text before the digest, e.g. `sha256=`. Default: none. */
  prefix: z.string().default(""),
});

const headerName = z.string().regex(/^[a-zA-Z0-9-]+$/, "expected a header name");

/** Schemes that are no HMAC of the body. */
const otherScheme = z.discriminatedUnion("type", [
  z.strictObject({
    /** A signed JSON Web Token. The secret is a text (HS256 …) or a public key in PEM (RS256, ES256, EdDSA …). */
    type: z.literal("jwt"),
    /** Header with the token, after `Bearer ` if it is `authorization`. Default `authorization`. */
    header: headerName.default("authorization"),
    /** Required value of the claim `iss`. */
    issuer: z.string().min(1).optional(),
    /** Required value of the claim `aud`. */
    audience: z.string().min(1).optional(),
    /** Claim with the SHA-256 of the body, which is not covered otherwise. */
    bodyHash: z
      .strictObject({
        /** Name of the claim. */
        claim: z.string().min(1),
        /** Form of the hash. Default `hex`. */
        encoding: z.enum(["hex", "base64", "base64url"]).default("hex"),
      })
      .optional(),
  }),
  z.strictObject({
    /** User name and password; the secret is `user:password`. */
    type: z.literal("basic"),
  }),
  z
    .strictObject({
      /** The secret itself, in a header or in the address. */
      type: z.literal("apiKey"),
      /** Header with the secret. */
      header: headerName.optional(),
      /** Text before the secret in the header. Default: none. */
      prefix: z.string().optional(),
      /** Instead of a header: the parameter of the query with the secret. */
      parameter: z.string().min(1).optional(),
    })
    .refine(({ header, parameter }) => (header === undefined) !== (parameter === undefined), {
      error: "expected either header or parameter",
    }),
  z.strictObject({
    /** Nothing but the address of the sender; needs `addresses`. */
    type: z.literal("addresses"),
  }),
]);

const source = z.strictObject({
  /** A built-in source whose scheme is used, an HMAC of the body (`header`, `algorithm`, `encoding`, `prefix`), or a `type`: `jwt`, `basic`, `apiKey` or `addresses`. Default: the name of the entry. */
  scheme: z.union([z.enum(BUILT_IN_SOURCE_NAMES), customScheme, otherScheme]).optional(),
  /** Addresses and CIDR ranges that may send, behind trusted proxies too; others are refused like a wrong signature. Default: any. */
  addresses: z
    .array(z.string().refine(isAddressRange, "expected an address or a CIDR range, e.g. 192.0.2.0/24"))
    .min(1)
    .max(256)
    .optional(),
  /** Generic scheme only: time and delivery id (`X-Timestamp`, `X-Event-Id`) are part of the signed text. Default false. */
  timestamped: z.boolean().default(false),
  /** Agent that receives the deliveries, in kebab-case. Default `webhook-agent`. */
  agent: z.string().min(1).default("webhook-agent"),
  /** Instead of an agent: a class of the worker that extends `DurableObject`; the entity is the name of the object. Its `fetch` receives the request as it was sent. */
  object: z.string().min(1).optional(),
  /** Rule for the entity. Default: the rule of the scheme. */
  entity: rules.optional(),
  /** Whether entities that differ in case, blanks or Unicode form are different (`exact`) or the same (`folded`). Default: `exact` for fields of the body, unless the scheme's provider ignores case; `folded` for headers. */
  entitySpelling: z.enum(["exact", "folded"]).optional(),
  /** Conversion of an entity to an instance name: `plain` is readable, `reversible` can be converted back. Default `plain`. */
  entityForm: z.enum(["plain", "reversible"]).default("plain"),
  /** Rule for the event type. Default: the rule of the scheme. */
  eventType: rules.optional(),
  /** Rule for the delivery id. Default: the rule of the scheme. */
  deliveryId: rules.optional(),
  /** Environment variable with the secrets. Default `<NAME>_WEBHOOK_SECRET`, for `generic` `WEBHOOK_SECRET`. */
  secretVariable: z
    .string()
    .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "expected the name of an environment variable")
    .optional(),
  /** Maximum difference between the signed time and the clock. Default: that of the scheme (300 s, Linear 60 s). */
  toleranceSeconds: z.int().min(1).max(86_400).optional(),
  /** Account of the source, its deliveries and its instances. Default `default`. */
  account: accountKey,
  /** Where deliveries go. Without routes they go to `agent` or `object`; with routes these are not used. */
  routes: z
    .array(configuredRoute)
    .max(50)
    .refine((routes) => new Set(routes.map(({ name }) => name)).size === routes.length, {
      error: "expected names that differ",
    })
    .default([]),
  /** Divides a body that is a list into deliveries of their own, each with its id. Default false. */
  batch: z.boolean().default(false),
});

export const webhookKeys = z
  .strictObject({
    /** Maximum body size of a delivery. Default 5 MiB. */
    maxBodyBytes: z.int().min(1).max(mebibytes(100)).default(mebibytes(5)),
    /** Time limit for receiving the body of a delivery after its headers. Default 10 s. */
    bodyTimeoutMs: z.int().min(10).default(10_000),
    /**
     * Time limit of the response to a sender. If the instance takes longer, the delivery is stored and the response is 202, or 503 if it
     * cannot be stored. Default 8 s: common senders wait at least 10 s, except Slack and Discord with 3 s.
     */
    answerWithinMs: z.int().min(100).max(600_000).default(8000),
    /** Maximum number of verified deliveries in progress, of which one account gets two thirds; further ones are refused with 503. Default 2,000. */
    maxInFlight: z.int().min(1).default(2000),
    /** Memory limit of bodies, of which one source gets two thirds; further deliveries are refused with 503. Default 64 MiB. */
    maxBufferedBytes: z.int().min(1024).default(mebibytes(64)),
    /** The address that providers send to, e.g. `https://hooks.example.com`; Twilio signs it. Default: `listener.publicUrl`, otherwise the Host of the request. */
    publicUrl: z.url({ protocol: /^https?$/ }).optional(),
    /** Number of deliveries in the inspector: about this many that succeeded, as many that failed, and of each source at most 100 that were rejected. Default 1,000. */
    keepDeliveries: z.int().min(0).max(1_000_000).default(1000),
    /** How long ended events of routes are kept, with their deliveries and attempts. Default 7. */
    keepEventsDays: z.int().min(1).max(365).default(7),
    /** Maximum size of all stored deliveries of sources with routes; further ones are refused with 503. Default 4 GiB. */
    maxStoredBytes: z.int().min(mebibytes(1)).default(mebibytes(4096)),
    /** Changes built-in sources or adds others. Built-in sources need no entry. */
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
    /** Allows `sendWebhook` to loopback and private addresses. Default false. */
    allowPrivateHosts: z.boolean().default(false),
  })
  .prefault({});

export type WebhooksConfig = z.output<typeof webhookKeys>;
export type WebhookSourceConfig = z.output<typeof source>;
export type CustomScheme = Exclude<NonNullable<WebhookSourceConfig["scheme"]>, string>;
