/** Webhook sources, deliveries, routes, events, replays, examples, listeners and issues. */
import { refused, step } from "./step.ts";

export const WEBHOOKS = [
  step(({ account }) => account.webhooks.sources().all()),
  step(({ account }) => account.webhooks.source("github")),
  step(({ account }) => account.webhooks.sample("github", { entity: "acme/shop", type: "push" })),
  step(({ account }) => account.webhooks.sendTest("github", { entity: "acme/shop", type: "push" })),
  step(
    ({ account }) => account.webhooks.deliveries({ source: "github", limit: 20 }).page(),
    ({ items: [delivery] }: { items: readonly { id: string }[] }) => ({ deliveryId: delivery?.id ?? "" }),
  ),
  step(({ account }) => account.webhooks.summary({ since: "2026-11-01T00:00:00Z" })),
  step(({ account }) =>
    account.webhooks.histogram({
      since: "2026-11-01T00:00:00Z",
      until: "2029-01-01T00:00:00Z",
      step_seconds: 86_400,
    }),
  ),
  step(({ account, deliveryId }) => account.webhooks.delivery(deliveryId)),
  step(({ account, deliveryId }) => account.webhooks.replay(deliveryId)),
  step(({ account }) => account.webhooks.replayFailed({ source: "github", limit: 100 })),
];

/** After a delivery whose agent has not answered in time. */
export const LATE = [
  step(
    ({ client }) => client.request("GET", "/accounts/default/webhooks/late-deliveries"),
    ({ result: [late] }: { result: readonly { id: string }[] }) => ({ lateDeliveryId: late?.id ?? "" }),
  ),
  refused(409, "the delivery is still attempted", ({ client, lateDeliveryId }) =>
    client.request("POST", `/accounts/default/webhooks/late-deliveries/${lateDeliveryId}/replay`, {
      body: {},
    }),
  ),
  refused(409, "the delivery is still attempted", ({ client, lateDeliveryId }) =>
    client.request("DELETE", `/accounts/default/webhooks/late-deliveries/${lateDeliveryId}`),
  ),
];

export const WEBHOOK_ROUTES = [
  step(({ account }) =>
    account.webhooks.routing.putRoute("shop", "tickets", {
      to: { agent: "ticket-agent" },
      rate: { limit: 10, per: "second" },
      retry: { strategy: "linear", intervalMs: 60_000, count: 1 },
    }),
  ),
  step(({ account }) => account.webhooks.routing.routes("shop").all()),
  step(({ account }) => account.webhooks.routing.route("shop", "tickets")),
  step(({ account }) => account.webhooks.routing.pauseRoute("shop", "tickets")),
  step(({ account }) => account.webhooks.routing.resumeRoute("shop", "tickets")),
];

/** After an event of the route has been delivered, and one waits in another route. */
export const EVENTS = [
  step(({ account, deliveryId }) =>
    account.webhooks.routing.tryFilters("shop", {
      delivery: deliveryId,
      when: { body: { type: "ticket.opened" } },
    }),
  ),
  step(
    ({ account }) => account.webhooks.routing.events({ route: "tickets", state: "delivered" }).page(),
    ({ items: [event] }: { items: readonly { id: string }[] }) => ({ eventId: event?.id ?? "" }),
  ),
  step(({ account, eventId }) => account.webhooks.routing.event(eventId)),
  step(({ account, eventId }) => account.webhooks.routing.replayEvent(eventId)),
  step(({ account, waitingEventId }) => account.webhooks.routing.cancelEvent(waitingEventId)),
  step(
    ({ account }) =>
      account.webhooks.routing.startReplay({ source: "shop", route: "tickets", state: "delivered" }),
    ({ id }: { id: string }) => ({ replayId: id }),
  ),
  step(({ account }) => account.webhooks.routing.replays().all()),
  step(({ account, replayId }) => account.webhooks.routing.replay(replayId)),
  step(({ account, replayId }) => account.webhooks.routing.cancelReplay(replayId)),
  step(({ account, deliveryId }) => account.webhooks.routing.putExample("a-ticket", deliveryId)),
  step(({ account }) => account.webhooks.routing.examples().all()),
  step(({ client }) => client.request("GET", "/accounts/default/webhooks/examples/a-ticket")),
  step(({ account }) => account.webhooks.routing.fireExample("a-ticket")),
  step(({ account }) => account.webhooks.routing.deleteExample("a-ticket")),
];

/** After an event of the route has failed. */
export const ISSUES = [
  step(
    ({ account }) => account.webhooks.routing.issues({ route: "failing", state: "open" }).all(),
    ([issue]: readonly { id: string }[]) => ({ issueId: issue?.id ?? "" }),
  ),
  step(({ account, issueId }) => account.webhooks.routing.issue(issueId)),
  step(({ account, issueId }) => account.webhooks.routing.acknowledgeIssue(issueId)),
  step(({ account, issueId }) => account.webhooks.routing.resolveIssue(issueId)),
  step(({ account }) => account.webhooks.routing.deleteRoute("shop", "tickets")),
];

/** The second one after a delivery for the listener. */
export const LISTENERS = [
  step(({ account }) => account.webhooks.routing.putListener("my-laptop", { sources: ["shop"] })),
  step(({ account }) => account.webhooks.routing.listener("my-laptop")),
  step(({ account }) => account.webhooks.routing.listen("my-laptop", { max: 10 }).next()),
  step(({ account, eventId }) =>
    account.webhooks.routing.reportResults("my-laptop", [
      {
        event: eventId,
        attempt: 1,
        url: "http://127.0.0.1:3000/hook",
        status: 200,
        error: null,
        duration_ms: 12,
      },
    ]),
  ),
  step(({ account }) => account.webhooks.routing.deleteListener("my-laptop")),
];
