/** Management routes of alerts. What a rule measures belongs to an area, so its caller needs the permission of that area as well. */
import { SignalboxError } from "@signalbox/protocol";
import { z } from "zod";
import { isAllowed, type Principal } from "../accounts/index.ts";
import type { Database } from "../database/database.ts";
import { defineRoute, type PathParams, type Route } from "../http/route.ts";
import { type AlertMetric, type AlertRule, alertSettings } from "./alert-rule.ts";
import { type AlertRules, showReceiver } from "./alert-rules.ts";
import type { NoticeOutbox } from "./notice-outbox.ts";

export interface AlertRouteParts {
  readonly rules: AlertRules;
  readonly outbox: NoticeOutbox;
  readonly database: Database;
}

const ALL = "/accounts/{account_id}/alerts";
const ONE = `${ALL}/{alert_id}`;

const alertResult = z.object({
  ...alertSettings.shape,
  id: z.string(),
  status: z.enum(["ok", "firing"]),
  /** Of the last check; null when there was too little to measure. */
  value: z.number().nullable(),
  since: z.iso.datetime().nullable(),
  notified_at: z.iso.datetime().nullable(),
  created_at: z.iso.datetime(),
  modified_at: z.iso.datetime(),
});

const noticeResult = z.object({
  id: z.string(),
  kind: z.enum(["firing", "resolved", "test"]),
  receiver: z.string(),
  attempts: z.int(),
  created_at: z.iso.datetime(),
  delivered_at: z.iso.datetime().nullable(),
  next_attempt_at: z.iso.datetime().nullable(),
  problem: z.string().nullable(),
});

/** The areas besides the gateway whose figures a metric shows. */
const AREA_OF: Readonly<Partial<Record<AlertMetric, "webhooks" | "agents">>> = {
  failed_deliveries: "webhooks",
  paused_routes: "webhooks",
  webhook_issues: "webhooks",
  dead_letters: "agents",
};

export function alertRoutes({ rules, outbox, database }: AlertRouteParts): Route[] {
  const findFor = (principal: Principal, params: PathParams<typeof ONE>, level: "read" | "edit") => {
    const rule = rules.find(params.account_id, params.alert_id);
    requireArea(principal, rule.accountId, rule.settings.metric, level);
    return rule;
  };
  return [
    defineRoute({
      method: "GET",
      path: ALL,
      access: "gateway.read",
      summary:
        "List the alerts of the account, those on webhooks and agents with the permissions of these areas.",
      result: z.array(alertResult),
      handler: async ({ params, principal }) => {
        await rules.readStates(params.account_id);
        return {
          result: rules
            .list(params.account_id)
            .filter(({ accountId, settings }) => mayUse(principal, accountId, settings.metric, "read"))
            .map(showAlert),
        };
      },
    }),
    defineRoute({
      method: "POST",
      effect: "create",
      path: ALL,
      access: "gateway.edit",
      summary:
        "Create an alert. Addresses of Slack and secrets are stored encrypted and shown as `[secret]`.",
      body: alertSettings,
      result: alertResult,
      handler: async ({ params, body, principal }) => {
        requireArea(principal, params.account_id, body.metric, "edit");
        return { result: showAlert(await rules.create(params.account_id, body)) };
      },
    }),
    defineRoute({
      method: "GET",
      path: ONE,
      access: "gateway.read",
      summary: "Read one alert and its state.",
      result: alertResult,
      handler: async ({ params, principal }) => {
        await rules.readStates(params.account_id);
        return { result: showAlert(findFor(principal, params, "read")) };
      },
    }),
    defineRoute({
      method: "PUT",
      path: ONE,
      access: "gateway.edit",
      summary: "Replace an alert's settings; it measures anew. `[secret]` keeps a stored secret.",
      body: alertSettings,
      result: alertResult,
      handler: async ({ params, body, principal }) => {
        findFor(principal, params, "edit");
        requireArea(principal, params.account_id, body.metric, "edit");
        return { result: showAlert(await rules.update(params.account_id, params.alert_id, body)) };
      },
    }),
    defineRoute({
      method: "DELETE",
      path: ONE,
      access: "gateway.edit",
      summary: "Delete an alert with its notices.",
      result: alertResult,
      handler: async ({ params, principal }) => {
        findFor(principal, params, "edit");
        return { result: showAlert(await rules.delete(params.account_id, params.alert_id)) };
      },
    }),
    defineRoute({
      method: "GET",
      path: `${ONE}/notices`,
      access: "gateway.read",
      summary: "List the last notices of an alert, newest first, with their delivery.",
      result: z.array(noticeResult),
      handler: async ({ params, principal }) => {
        const { id, settings } = findFor(principal, params, "read");
        const rows = await outbox.list(id);
        return {
          result: rows.map((row) => ({
            id: row.id,
            kind: row.kind,
            receiver: settings.receivers[row.receiver]?.type ?? "",
            attempts: row.attempts,
            created_at: toText(row.created_at),
            delivered_at: toText(row.delivered_at),
            next_attempt_at: toText(row.next_at),
            problem: row.problem,
          })),
        };
      },
    }),
    defineRoute({
      method: "POST",
      effect: "action",
      path: `${ONE}/test`,
      access: "gateway.edit",
      summary: "Send a test notice to every receiver of an alert.",
      result: z.object({ queued: z.int() }),
      handler: async ({ params, principal }) => {
        const rule = findFor(principal, params, "edit");
        const ids = await database.transaction((tx) => outbox.addTest(tx, rule), {
          scope: "alerts",
          isConcurrent: true,
        });
        await outbox.send(ids);
        return { result: { queued: rule.settings.receivers.length } };
      },
    }),
  ];
}

function mayUse(
  principal: Principal,
  accountId: string,
  metric: AlertMetric,
  level: "read" | "edit",
): boolean {
  const area = AREA_OF[metric];
  return area === undefined || isAllowed(principal, accountId, `${area}.${level}`);
}

function requireArea(
  principal: Principal,
  accountId: string,
  metric: AlertMetric,
  level: "read" | "edit",
): void {
  if (mayUse(principal, accountId, metric, level)) return;
  throw new SignalboxError("forbidden", {
    message: `An alert on ${metric} needs ${AREA_OF[metric]}.${level}`,
  });
}

function showAlert({ id, settings, state, createdAt, modifiedAt }: AlertRule): z.input<typeof alertResult> {
  return {
    ...settings,
    receivers: settings.receivers.map(showReceiver),
    id,
    status: state.status,
    value: state.value,
    since: toText(state.since),
    notified_at: toText(state.notifiedAt),
    created_at: new Date(createdAt).toISOString(),
    modified_at: new Date(modifiedAt).toISOString(),
  };
}

function toText(time: number | null): string | null {
  return time === null ? null : new Date(time).toISOString();
}
