import { defineConfig } from "signalbox";

export default defineConfig({
  agents: {
    modules: ["./agents.ts"],
    // Everybody may watch. A real help desk looks at the request here: a cookie, a header of its proxy.
    authorize: () => "read",
  },
  webhooks: {
    sources: {
      // POST /webhooks/tickets, signed with TICKETS_WEBHOOK_SECRET; the field `mailbox` selects the instance.
      tickets: { scheme: "generic", agent: "inbox", entity: "body:mailbox" },
    },
  },
});
