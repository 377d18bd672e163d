/** Routes of a webhook source, as the configuration file and the management interface describe them; only secrets differ. */
import { z } from "zod";
import { isFields } from "../core/fields.ts";

const SECOND = 1000;
const DAY = 24 * 60 * 60 * SECOND;

export const ROUTE_NAME = /^[a-z0-9][a-z0-9_-]{0,63}$/;
/** Not those that the connection needs. */
const HEADER_NAME =
  /^(?!(?:host|connection|content-length|transfer-encoding|expect|upgrade|te|trailer)$)[!#$%&'*+.^_`|~0-9A-Za-z-]+$/i;
/** Visible characters and blanks; a line break would add a header. */
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** `500-599`, `>=500`, `!404`, or a number. */
const statuses = z
  .array(
    z.union([
      z.int().min(100).max(599),
      z
        .string()
        .regex(/^(!?\d{3}|\d{3}-\d{3}|(>|>=|<|<=)\d{3})$/, "expected e.g. 429, 500-599, >=500 or !404"),
    ]),
  )
  .min(1)
  .max(32);

const interval = z.int().min(SECOND).max(DAY);

const retry = z.discriminatedUnion("strategy", [
  z.strictObject({
    /** The same time before each retry. */
    strategy: z.literal("linear"),
    intervalMs: interval,
    count: z.int().min(0).max(100),
    statuses: statuses.optional(),
  }),
  z.strictObject({
    /** Twice the time before each further retry, at most a day. */
    strategy: z.literal("exponential"),
    intervalMs: interval,
    count: z.int().min(0).max(100),
    statuses: statuses.optional(),
  }),
  z.strictObject({
    /** The times before the retries. */
    strategy: z.literal("list"),
    intervalsMs: z.array(interval).min(1).max(100),
    statuses: statuses.optional(),
  }),
]);
export type RetrySettings = z.output<typeof retry>;

/** Filters are checked by the area, which knows their language. */
const json = z.unknown().meta({ title: "JSON value" });
const when = z.strictObject({
  /** Filter on the parsed body. */
  body: json.optional(),
  /** Filter on the headers, whose names ignore case. */
  headers: z.record(z.string(), json).optional(),
  /** Filter on the parameters of the query; one that is repeated is a list. */
  query: z.record(z.string(), json).optional(),
  /** Filter on the path of the request. */
  path: json.optional(),
});

const rate = z
  .strictObject({
    /** Attempts in each period, evenly distributed. */
    limit: z.int().min(1).max(100_000).optional(),
    /** Period of `limit`. Default `second`. */
    per: z.enum(["second", "minute", "hour"]).default("second"),
    /** Attempts at the same time. */
    concurrent: z.int().min(1).max(256).optional(),
  })
  .refine(({ limit, concurrent }) => limit !== undefined || concurrent !== undefined, {
    error: "expected limit or concurrent",
  });

const url = z
  .string()
  .max(2048)
  .refine((text) => {
    const parsed = URL.parse(text);
    return (
      parsed !== null && /^https?:$/.test(parsed.protocol) && parsed.username === "" && parsed.password === ""
    );
  }, "expected an http:// or https:// address without user name and password");

/** `secret` is how the secret is given: its text, or the name of a variable. */
function target<Secret extends z.ZodRawShape>(secret: Secret) {
  const auth = z.discriminatedUnion("type", [
    z.strictObject({ type: z.literal("bearer"), ...secret }),
    z.strictObject({
      type: z.literal("basic"),
      username: z
        .string()
        .min(1)
        .max(256)
        .regex(/^[^:]*$/),
      ...secret,
    }),
    z.strictObject({ type: z.literal("header"), name: z.string().max(128).regex(HEADER_NAME), ...secret }),
    /** `X-Signature`, as the generic scheme. */
    z.strictObject({ type: z.literal("signature"), ...secret }),
    /** `webhook-id`, `webhook-timestamp` and `webhook-signature` of Standard Webhooks. */
    z.strictObject({ type: z.literal("standard"), ...secret }),
  ]);
  return z.union(
    [
      z.strictObject({
        /** The kebab-case name of the class. */
        agent: z.string().min(1).max(128),
      }),
      z.strictObject({
        /** A class of the worker that extends `DurableObject`. */
        object: z.string().min(1).max(128),
      }),
      z.strictObject({
        /** Events are kept for `signalbox webhooks listen` with the name of the route. */
        listen: z.literal(true),
      }),
      z.strictObject({
        /** Address that receives the sender's bytes and headers. */
        url,
        /** Method of the request. Default `POST`. */
        method: z.enum(["POST", "PUT", "PATCH", "DELETE"]).default("POST"),
        /** Added to the sender's headers, or in their place. */
        headers: z
          .record(z.string().max(128).regex(HEADER_NAME), z.string().max(4096).regex(HEADER_VALUE))
          .optional(),
        /** A `type` (`bearer`, `basic` with `username`, `header` with `name`, `signature`, `standard`) and `secretVariable`, the variable with the secret. */
        auth: auth.optional(),
        /** Time limit of an attempt. Default 15 s. */
        timeoutMs: z
          .int()
          .min(SECOND)
          .max(120 * SECOND)
          .default(15 * SECOND),
      }),
    ],
    { error: explainTarget },
  );
}

/** Members of targets, in the order of their forms. */
const TARGETS = ["agent", "object", "listen", "url"];

/** What is wrong with the form that is meant. */
function explainTarget({ input, errors }: { readonly input?: unknown; readonly errors?: unknown }): string {
  const given = isFields(input) ? TARGETS.filter((name) => Object.hasOwn(input, name)) : [];
  const [name = "", ...others] = given;
  const [issue] = (errors as { path: PropertyKey[]; message: string }[][])[TARGETS.indexOf(name)] ?? [];
  if (issue === undefined || others.length > 0) return `expected one of ${TARGETS.join(", ")}`;
  return issue.path.length === 0 ? issue.message : `${issue.path.join(".")}: ${issue.message}`;
}

function route<Secret extends z.ZodRawShape>(secret: Secret) {
  return z.strictObject({
    /** Conditions on the parts of a delivery; all of them must hold. Default: every delivery. */
    when: when.optional(),
    /** An agent, an object, an address or a listener. */
    to: target(secret),
    /** Ignores deliveries that equal an earlier one of this time in these fields of the body. Default of `fields`: the whole body. */
    dedupe: z
      .strictObject({
        /** Milliseconds in which an equal delivery is ignored. */
        windowMs: z
          .int()
          .min(SECOND)
          .max(7 * DAY),
        /** Paths of members of the body that are compared. Default: the whole body. */
        fields: z.array(z.string().min(1).max(256)).min(1).max(16).optional(),
      })
      .optional(),
    /** Milliseconds before the first attempt. */
    delay: z
      .int()
      .min(0)
      .max(30 * DAY)
      .optional(),
    /** A `strategy`: `linear` or `exponential` with `intervalMs` and `count`, or `list` with `intervalsMs`; and `statuses` that are retried. Default: eight attempts in about 28 hours, for every status other than 2xx and 410. */
    retry: retry.optional(),
    /** `limit` attempts `per` period, `concurrent` at a time, or both. */
    rate: rate.optional(),
    /** `entity`: one event of an entity at a time, in the order of arrival; a failing one holds the others. Default: no order. */
    order: z.literal("entity").optional(),
    /** Paused routes keep their events. */
    paused: z.boolean().optional(),
  });
}

const secretVariable = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "expected the name of an environment variable");

/** In the configuration file, secrets are named by their variables. */
export const configuredRoute = route({ secretVariable }).extend({
  /** Name of the route, unique in its source. */
  name: z.string().regex(ROUTE_NAME, "expected lower-case letters, digits, _ and -"),
});
export type ConfiguredRoute = z.output<typeof configuredRoute>;

/** In the interface, secrets are texts. The environment belongs to the operator, so its variables cannot be named there. */
export const managedRoute = route({ secret: z.string().min(1).max(4096).regex(HEADER_VALUE) });
export type ManagedRoute = z.output<typeof managedRoute>;
