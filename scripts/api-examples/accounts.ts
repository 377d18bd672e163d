/** Accounts, tokens, the audit log, alerts, and the service itself. */
import { refused, step } from "./step.ts";

export const ACCOUNTS = [
  step(({ client }) => client.accounts.create({ id: "acme", name: "Acme" })),
  step(({ client }) => client.accounts.list().all()),
  step(({ client }) => client.accounts.get("acme")),
  step(
    ({ account }) =>
      account.tokens.create({
        name: "search in production",
        permissions: ["gateway.run"],
        gateway_id: "shop",
        owner: "team-search",
        budgets: [{ limit: 50, window: "month" }],
      }),
    ({ id }: { id: string }) => ({ tokenId: id }),
  ),
  step(({ account }) => account.tokens.list({ owner: "team-search" }).all()),
  step(({ account, tokenId }) => account.tokens.get(tokenId)),
  step(({ account, tokenId }) => account.tokens.update(tokenId, { models: ["openai/gpt-5*"] })),
  step(({ account, tokenId }) => account.tokens.rotate(tokenId, { grace_s: 3600 })),
  step(({ account, tokenId }) => account.tokens.usage(tokenId, { group_by: ["day", "model"] })),
  step(({ account, tokenId }) => account.budgets.state({ tokenId })),
  step(({ account }) => account.audit.list({ action: "create", limit: 20 }).page()),
  step(({ account }) => account.audit.export({ format: "csv" })),
  step(({ client }) => client.audit.list().page()),
  step(({ client }) => client.audit.export()),
];

export const ALERTS = [
  step(
    ({ account }) =>
      account.alerts.create({
        name: "Many errors",
        metric: "error_rate",
        threshold: 0.05,
        window: 300,
        receivers: [{ type: "slack", url: "https://hooks.slack.example/services/T0/B0" }],
      }),
    ({ id }: { id: string }) => ({ alertId: id }),
  ),
  step(({ account }) => account.alerts.list()),
  step(({ account, alertId }) => account.alerts.get(alertId)),
  step(({ account, alertId }) =>
    account.alerts.replace(alertId, {
      name: "Expensive day",
      metric: "spend",
      threshold: 100,
      window: 86_400,
      receivers: [{ type: "webhook", url: "https://ops.example/hooks/signalbox" }],
    }),
  ),
  step(({ account, alertId }) => account.alerts.test(alertId)),
  step(({ account, alertId }) => account.alerts.notices(alertId)),
  step(({ account, alertId }) => account.alerts.delete(alertId)),
];

export const SERVICE = [
  step(({ client }) => client.createLoginLink()),
  step(({ client }) => client.cluster.status()),
  step(({ client }) => client.cluster.nodes()),
  step(({ client }) => client.backup({ call_logs: false })),
  step(({ client }) => client.rotateMasterKey()),
  step(({ client }) => client.request("GET", "/log_push")),
  refused(409, "the configuration has no `gateway.logPush`", ({ client }) =>
    client.request("POST", "/log_push/run", { body: {} }),
  ),
];
