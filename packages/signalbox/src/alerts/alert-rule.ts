/** An alert rule: what is measured, when that is too much, and who is told. */
import { z } from "zod";

export const METRICS = [
  "error_rate",
  "latency_p95",
  "spend",
  "guardrails",
  "failed_deliveries",
  "paused_routes",
  "webhook_issues",
  "dead_letters",
] as const;
export type AlertMetric = (typeof METRICS)[number];

const MAX_RECEIVERS = 5;

const address = z
  .string()
  .max(2048)
  .refine(
    (text) => text === "[secret]" || /^https?:$/.test(URL.parse(text)?.protocol ?? ""),
    "must be an http:// or https:// address",
  );

const receiver = z.discriminatedUnion("type", [
  /** A signed webhook (Standard Webhooks). */
  z.strictObject({
    type: z.literal("webhook"),
    url: address,
    secret: z.union([z.literal("[secret]"), z.string().min(16).max(256)]).optional(),
  }),
  /** An incoming webhook of Slack. Its address is a credential. */
  z.strictObject({ type: z.literal("slack"), url: address }),
]);
export type AlertReceiver = z.output<typeof receiver>;

export const alertSettings = z
  .strictObject({
    name: z.string().min(1).max(128),
    enabled: z.boolean().default(true),
    metric: z.enum(METRICS),
    /** A share from 0 to 1, seconds, US dollars, or a number of events. The alert fires at or above it. */
    threshold: z.number().positive(),
    /** Seconds. */
    window: z.int().min(60).max(86_400).default(300),
    /** Fewer calls in the window do not fire a rule on error rate or latency. */
    min_calls: z.int().min(1).max(1_000_000).default(10),
    /** Only calls of this gateway. */
    gateway_id: z.string().min(1).max(64).nullable().default(null),
    /** Only calls to this provider. */
    provider: z.string().min(1).max(128).nullable().default(null),
    /** Only this guardrail, by its id. */
    guardrail: z.string().min(1).max(128).optional(),
    /** Only deliveries of this source. */
    source: z.string().min(1).max(128).nullable().default(null),
    /** Seconds after a notice in which the rule sends no other notice that it fires. */
    quiet_period: z.int().min(0).max(604_800).default(3600),
    notify_resolved: z.boolean().default(true),
    receivers: z.array(receiver).min(1).max(MAX_RECEIVERS),
  })
  .refine(({ metric, threshold }) => metric !== "error_rate" || threshold <= 1, {
    path: ["threshold"],
    error: "of an error rate is a share from 0 to 1",
  });
export type AlertSettings = z.output<typeof alertSettings>;

export interface AlertState {
  readonly status: "ok" | "firing";
  /** When the current status began; null before the first check. */
  readonly since: number | null;
  /** When a notice that the rule fires was sent last. */
  readonly notifiedAt: number | null;
  /** Whether the current firing was reported. */
  readonly isReported: boolean;
  /** Of the last check; null when there was too little to measure. */
  readonly value: number | null;
}

export const FIRST_STATE: AlertState = {
  status: "ok",
  since: null,
  notifiedAt: null,
  isReported: false,
  value: null,
};

export interface AlertRule {
  readonly id: string;
  readonly accountId: string;
  readonly settings: AlertSettings;
  readonly state: AlertState;
  readonly createdAt: number;
  readonly modifiedAt: number;
}
