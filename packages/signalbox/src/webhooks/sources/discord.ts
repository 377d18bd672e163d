/**
 * Discord: interactions and webhook events of an application; one instance a server (guild), else the application.
 * An interaction expects its answer in the response, which only an agent's own `onRequest` can give.
 */
import { discordScheme } from "../schemes/index.ts";
import { fieldAt, firstTextAt, payloadRule, rules, textAt, words } from "./rule.ts";
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
      (payload) => INTERACTIONS[textAt(payload, "type") ?? ""] ?? textAt(payload, "type"),
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
    // An interactions endpoint is probed with 1 and must echo it; a webhook events endpoint with 0 and wants an empty answer.
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
