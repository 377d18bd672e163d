/**
 * Discord: interactions and webhook events of an application. One instance for each server (guild), else for the application. An interaction
 * expects its answer in the response, which needs an agent with its own `onRequest`.
 */
import { discordScheme } from "../schemes/index.ts";
import { fieldAt, firstTextAt, idAt, payloadRule, rules, words } from "./rule.ts";
import { jsonSample, type SourceKind } from "./source-kind.ts";

const INTERACTIONS: Readonly<Record<string, string>> = {
  1: "ping",
  2: "application_command",
  3: "message_component",
  4: "autocomplete",
  5: "modal_submit",
};

export const discord: SourceKind = {
  name: "discord",
  scheme: discordScheme,
  entity: rules(
    "body:guild_id",
    "body:event.data.guild.id",
    "body:event.data.guild_id",
    "body:application_id",
  ),
  eventType: [
    ...rules("body:event.type"),
    payloadRule(
      "body:type, by name",
      (delivery) => INTERACTIONS[idAt(delivery, "type") ?? ""] ?? idAt(delivery, "type"),
    ),
  ],
  deliveryId: rules("body:id", "body:event.id"),
  describe({ payload }, type) {
    return {
      title: words(type, firstTextAt(payload, "data.name", "data.custom_id")),
      description: firstTextAt(payload, "message.content", "event.data.message.content"),
      actor: firstTextAt(payload, "member.user.username", "user.username", "event.data.user.username"),
    };
  },
  handshake({ payload }) {
    if (fieldAt(payload, "event") !== undefined) return null;
    // An interactions endpoint is probed with type 1 and must repeat it; a webhook events endpoint with type 0 and must answer 204.
    if (fieldAt(payload, "type") === 1) return { status: 200, body: '{"type":1}' };
    return fieldAt(payload, "type") === 0 ? { status: 204, body: "" } : null;
  },
  sample: ({ entity, deliveryId }) =>
    jsonSample({
      id: deliveryId,
      type: 2,
      guild_id: entity,
      data: { name: "sample" },
      member: { user: { username: "sample" } },
    }),
};
