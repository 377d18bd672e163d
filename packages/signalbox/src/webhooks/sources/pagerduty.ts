/** PagerDuty webhooks, version 3: one instance for each service. */
import { pagerdutyScheme } from "../schemes/index.ts";
import { firstTextAt, guesses, rules, textAt, words } from "./rule.ts";
import { jsonSample, type SourceKind } from "./source-kind.ts";

export const pagerduty: SourceKind = {
  name: "pagerduty",
  scheme: pagerdutyScheme,
  entity: [
    ...rules("body:event.data.service.id", "body:event.data.incident.service.id"),
    // The subject of an event that belongs to no service.
    ...guesses("body:event.data.id"),
  ],
  eventType: rules("body:event.event_type"),
  action: rules("body:event.data.status"),
  deliveryId: rules("body:event.id"),
  describe({ payload }, type) {
    const number = textAt(payload, "event.data.number");
    const name = firstTextAt(
      payload,
      "event.data.title",
      "event.data.incident.summary",
      "event.data.summary",
    );
    const head = words(type, number && `#${number}`);
    return {
      title: name === null ? head : `${head}: ${name}`,
      description: firstTextAt(
        payload,
        "event.data.content",
        "event.data.service.summary",
        "event.data.urgency",
      ),
      url: firstTextAt(payload, "event.data.html_url", "event.data.incident.html_url"),
      actor: firstTextAt(payload, "event.agent.summary", "event.client.name"),
    };
  },
  // Sent by the button "Send test event"; it belongs to no service.
  handshake: (_delivery, type) => (type === "pagey.ping" ? { status: 200, body: '{"status":"pong"}' } : null),
  sample: ({ entity, deliveryId, now }) =>
    jsonSample({
      event: {
        id: deliveryId,
        event_type: "incident.triggered",
        occurred_at: new Date(now).toISOString(),
        agent: { summary: "Sample" },
        data: {
          number: 1,
          title: "A sample incident",
          status: "triggered",
          service: { id: entity, summary: "Sample service" },
        },
      },
    }),
};
