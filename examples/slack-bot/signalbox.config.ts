import { defineConfig } from "signalbox";

export default defineConfig({
  agents: { modules: ["./agents.ts"] },
  webhooks: {
    sources: {
      // POST /webhooks/slack, signed with SLACK_WEBHOOK_SECRET; one instance for each channel.
      slack: { agent: "slack-bot", entity: ["body:event.channel", "body:team_id"] },
    },
  },
});
