/** Slack: events, interactions (a form with `payload`) and slash commands (a plain form). One instance for each workspace. */
import { slackScheme } from "../schemes/index.ts";
import { firstTextAt, rules, textAt, words } from "./rule.ts";
import { jsonSample, type SourceKind } from "./source-kind.ts";

export const slack: SourceKind = {
  name: "slack",
  scheme: slackScheme,
  takesForms: true,
  formPayloadField: "payload",
  // The header is last because it is not signed; Slack's own deliveries name the workspace in the body.
  entity: rules(
    "body:team_id",
    "body:team.id",
    "body:enterprise_id",
    "body:enterprise.id",
    "header:x-slack-team-id",
  ),
  eventType: rules("body:event.type", "body:command", "body:type"),
  action: rules("body:event.subtype", "body:actions.0.action_id"),
  deliveryId: rules("body:event_id", "body:trigger_id"),
  describe({ payload }, type) {
    const channel = firstTextAt(payload, "event.channel", "channel.id", "channel_name", "event.item.channel");
    return {
      title: words(type, channel && `in ${channel}`),
      description: firstTextAt(payload, "event.text", "text", "event.reaction", "message.text"),
      url: firstTextAt(payload, "event.permalink", "response_url"),
      actor: firstTextAt(payload, "event.user", "user.username", "user.id", "user_name", "event.bot_id"),
    };
  },
  handshake({ payload }, type) {
    if (type !== "url_verification") return null;
    const challenge = textAt(payload, "challenge");
    return challenge === null ? null : { status: 200, body: JSON.stringify({ challenge }) };
  },
  sample: ({ entity, deliveryId, now }) =>
    jsonSample({
      type: "event_callback",
      team_id: entity,
      event_id: deliveryId,
      event_time: Math.floor(now / 1000),
      event: { type: "message", channel: "C0SAMPLE", user: "U0SAMPLE", text: "A sample message" },
    }),
};
