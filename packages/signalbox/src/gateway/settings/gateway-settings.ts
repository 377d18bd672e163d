/**
 * The settings of a gateway, with the names of the hosted original. Settings of the original that this service does not support are
 * accepted only with the value that means "off", so that no client believes it has switched one on.
 */
import { z } from "zod";
import { guardrailRules } from "../../accounts/index.ts";
import { isTimeZone } from "../../core/time-zone.ts";
import { dlpProfileError } from "./dlp-profiles.ts";

const BACKOFFS = ["constant", "linear", "exponential"] as const;
const TECHNIQUES = ["fixed", "sliding"] as const;
export const MAX_CACHE_TTL_S = 30 * 24 * 3600;
export const MAX_ATTEMPTS = 5;
export const MAX_RETRY_DELAY_MS = 60_000;
const MAX_SPEND_RULES = 20;

/** Values of a provider or model may contain `*`. */
const filter = z.strictObject({ mode: z.literal("filter"), values: z.array(z.string()).min(1).max(100) });
const partition = z.strictObject({ mode: z.literal("partition") });

const spendRule = z
  .strictObject({
    id: z
      .string()
      .regex(/^[A-Za-z0-9_-]{1,64}$/, "must be 1 to 64 letters, digits, _ or -")
      .optional(),
    enabled: z.boolean().default(true),
    limitType: z.enum(["cost", "requests", "tokens", "parallel"]),
    /** US dollars, requests, tokens, or calls at the same time. */
    limit: z.number().positive(),
    /** Seconds, a calendar period, or null for prepaid credit. */
    window: z
      .union([
        z
          .int()
          .min(1)
          .max(366 * 24 * 3600),
        z.enum(["day", "week", "month"]),
      ])
      .nullable()
      .optional(),
    technique: z.enum(TECHNIQUES).default("fixed"),
    /** Of calendar periods. */
    timezone: z.string().max(64).refine(isTimeZone, "must be the name of a time zone").default("UTC"),
    model: filter.optional(),
    provider: filter.optional(),
    metadata: z.record(z.string(), z.union([partition, filter])).optional(),
  })
  .refine(({ limitType, window }) => limitType === "parallel" || window !== undefined, {
    path: ["window"],
    error: "is required",
  })
  .refine(({ limitType, window }) => limitType === "cost" || limitType === "parallel" || window !== null, {
    path: ["window"],
    error: "null is for limits on cost only",
  })
  .refine(({ limitType, limit }) => limitType === "cost" || Number.isSafeInteger(limit), {
    path: ["limit"],
    error: "must be a whole number",
  })
  .transform(({ window, ...rule }) => ({ ...rule, window: window ?? null }));

const usdPerMillion = z.number().min(0);

export const spendRules = z
  .array(spendRule)
  .max(MAX_SPEND_RULES)
  .default([])
  // Amounts already spent are stored by rule id, so each rule gets an id that does not change when rules are reordered.
  .transform((rules) => rules.map((rule, i) => ({ ...rule, id: rule.id ?? `rule-${i + 1}` })))
  .refine((rules) => new Set(rules.map((rule) => rule.id)).size === rules.length, "ids must differ");

const spendLimits = z.strictObject({
  enabled: z.boolean().default(true),
  rules: spendRules,
  /** What a call costs whose price is unknown: `block` refuses it, `allow` does not count it; or US dollars per million tokens. */
  unknown_price: z
    .union([z.enum(["block", "allow"]), z.strictObject({ in: usdPerMillion, out: usdPerMillion })])
    .default("block"),
});

/** A receiver of telemetry. The values of headers are stored encrypted (`otel-receivers.ts`). */
const otelReceiver = z.strictObject({
  url: z
    .string()
    .max(2048)
    .refine(
      (text) => /^https?:$/.test(URL.parse(text)?.protocol ?? ""),
      "must be an http:// or https:// address",
    ),
  headers: z.record(z.string().regex(/^[\w!#$%&'*+.^`|~-]{1,128}$/), z.string().max(8192)).default({}),
  /** Value of the header `authorization`. */
  authorization: z.string().min(1).max(8192).optional(),
  content_type: z.enum(["json", "protobuf"]).default("json"),
});
export type OtelReceiver = z.output<typeof otelReceiver>;
const MAX_OTEL_RECEIVERS = 5;
const MAX_DLP_PROFILES = 20;

const dlpProfiles = z.array(z.string().min(1).max(64)).min(1).max(MAX_DLP_PROFILES);
const dlpAction = z.enum(["BLOCK", "FLAG"]);
const MAX_DLP_POLICIES = 20;

/** The two forms of the original. */
const dlpForms = z.union([
  // What is off means nothing: a setting may be copied from there, with profiles that exist only there.
  z.strictObject({
    enabled: z.literal(false),
    action: dlpAction.optional(),
    profiles: z.array(z.string().max(64)).max(100).optional(),
    policies: z
      .array(z.record(z.string().max(64), z.unknown()))
      .max(MAX_DLP_POLICIES)
      .optional(),
  }),
  z.strictObject({ enabled: z.boolean(), action: dlpAction, profiles: dlpProfiles }),
  z.strictObject({
    enabled: z.boolean(),
    policies: z
      .array(
        z.strictObject({
          id: z.string().min(1).max(64),
          enabled: z.boolean(),
          action: dlpAction,
          check: z.array(z.enum(["REQUEST", "RESPONSE"])).min(1),
          profiles: dlpProfiles,
        }),
      )
      .max(MAX_DLP_POLICIES)
      .refine(
        (policies) => new Set(policies.map(({ id }) => id)).size === policies.length,
        "ids must differ",
      ),
  }),
]);
/** Profiles that are in use must be known; others mean nothing. */
const dlpSettings = dlpForms.superRefine((settings, context) => {
  if (!settings.enabled) return;
  const lists =
    "policies" in settings
      ? settings.policies.flatMap(({ enabled, profiles }, i) =>
          enabled ? [{ profiles, path: ["policies", i, "profiles"] }] : [],
        )
      : [{ profiles: settings.profiles, path: ["profiles"] }];
  for (const { profiles, path } of lists) {
    for (const [i, profile] of profiles.entries()) {
      const message = dlpProfileError(profile);
      if (message !== null) context.addIssue({ code: "custom", path: [...path, i], message });
    }
  }
});
export type DlpSettings = z.output<typeof dlpForms>;

const categoryAction = z.enum(["FLAG", "BLOCK"]).optional();
/** Categories of Llama Guard, and prompt injection. */
const categories = z.strictObject({
  S1: categoryAction,
  S2: categoryAction,
  S3: categoryAction,
  S4: categoryAction,
  S5: categoryAction,
  S6: categoryAction,
  S7: categoryAction,
  S8: categoryAction,
  S9: categoryAction,
  S10: categoryAction,
  S11: categoryAction,
  S12: categoryAction,
  S13: categoryAction,
  P1: categoryAction,
});
const categorySettings = z.strictObject({ prompt: categories, response: categories });
export type CategorySettings = z.output<typeof categorySettings>;

export const gatewaySettings = z.object({
  /** Every call needs a token. */
  authentication: z.boolean().default(false),
  /** Stored provider keys are also used for calls without a token. */
  allow_anonymous_keys: z.boolean().default(false),
  /** A call that neither has a provider's credential nor gets a stored key is refused instead of sent. */
  byok_only: z.boolean().default(false),
  /** Seconds; null or 0 switches the cache off. */
  cache_ttl: z.int().min(0).max(MAX_CACHE_TTL_S).nullable().default(null),
  /** Whether a change of the settings empties the cache. */
  cache_invalidate_on_update: z.boolean().default(false),
  collect_logs: z.boolean().default(true),
  /** How many rows are kept; null: as many as the service's retention keeps. */
  log_management: z.int().min(1).max(10_000_000).nullable().default(null),
  log_management_strategy: z.enum(["STOP_INSERTING", "DELETE_OLDEST"]).nullable().default(null),
  /** Seconds; null or 0 switches the limit off. */
  rate_limiting_interval: z
    .int()
    .min(0)
    .max(366 * 24 * 3600)
    .nullable()
    .default(null),
  /** Calls per interval; null or 0 switches the limit off. */
  rate_limiting_limit: z.int().min(0).max(10_000_000).nullable().default(null),
  rate_limiting_technique: z.enum(TECHNIQUES).nullable().default("fixed"),
  retry_max_attempts: z.int().min(1).max(MAX_ATTEMPTS).nullable().default(null),
  /** Milliseconds. */
  retry_delay: z.int().min(0).max(MAX_RETRY_DELAY_MS).nullable().default(null),
  retry_backoff: z.enum(BACKOFFS).nullable().default(null),
  spend_limits: spendLimits.nullable().default(null),
  /** Whether the price that a caller states for its call counts in limits. Otherwise it only does for tokens with `gateway.price`. */
  trust_custom_cost: z.boolean().default(false),
  /** Data that calls must not contain. */
  dlp: dlpSettings.nullable().default(null),
  /** Categories of content that a model judges (`gateway.guardrails` names the models). */
  guardrails: categorySettings.nullable().default(null),
  /** Set at a path of its own. */
  guardrail_rules: guardrailRules.nullable().default(null),
  /** Where the spans of calls are sent, over OTLP/HTTP. */
  otel: z.array(otelReceiver).max(MAX_OTEL_RECEIVERS).nullable().default(null),
  /** Whether the spans contain prompts and answers. */
  otel_content: z.boolean().default(false),
});

export type GatewaySettings = z.output<typeof gatewaySettings>;
export type SpendLimitSettings = NonNullable<GatewaySettings["spend_limits"]>;
export type SpendRule = SpendLimitSettings["rules"][number];
export type Backoff = (typeof BACKOFFS)[number];

export const DEFAULT_SETTINGS: GatewaySettings = gatewaySettings.parse({});

const off = (...values: readonly (string | boolean | null)[]) =>
  z
    .any()
    .optional()
    .refine((value) => value === undefined || isOff(value, values), "is not supported here");

function isOff(value: unknown, values: readonly unknown[]): boolean {
  if (Array.isArray(value)) return value.length === 0;
  if (typeof value === "object" && value !== null && "enabled" in value) return value.enabled === false;
  return values.includes(value);
}

const unsupported = {
  log_classification: off(false),
  logpush: off(false),
  logpush_public_key: off(null),
  store_id: off(null, ""),
  stripe: off(null),
  workers_ai_billing_mode: off("postpaid"),
  zdr: off(false),
};

/** Without defaults: settings that an update omits keep their values. */
const changes = z.object(
  Object.fromEntries(
    Object.entries(gatewaySettings.shape).map(([name, schema]) => [name, schema.removeDefault().optional()]),
  ) as {
    [Name in keyof typeof gatewaySettings.shape]: z.ZodOptional<
      ReturnType<(typeof gatewaySettings.shape)[Name]["removeDefault"]>
    >;
  },
);

/** Returned by a read and not settable; accepted and ignored, so that a client can send back what it read. */
const readOnly = {
  is_default: z.unknown().optional(),
  created_at: z.unknown().optional(),
  modified_at: z.unknown().optional(),
};

const { guardrail_rules: _, ...ownChanges } = changes.shape;

export const gatewayUpdate = z.strictObject({
  ...ownChanges,
  ...unsupported,
  ...readOnly,
  id: z.string().optional(),
});
export const gatewayCreation = z.strictObject({ ...ownChanges, ...unsupported, id: z.string() });

/** The known settings of a checked body. */
export function pickSettings(body: Readonly<Record<string, unknown>>): Partial<GatewaySettings> {
  return Object.fromEntries(
    Object.entries(body).filter(([name, value]) => value !== undefined && name in gatewaySettings.shape),
  );
}
