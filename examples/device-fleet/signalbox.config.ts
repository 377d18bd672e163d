import { defineConfig } from "signalbox";

export default defineConfig({
  agents: {
    modules: ["./agents.ts"],
    // Everybody may watch. A real site looks at the request here: a cookie, a header of its proxy.
    authorize: () => "read",
  },
  webhooks: {
    sources: {
      // POST /webhooks/devices, signed with DEVICES_WEBHOOK_SECRET; the field `device` selects the instance.
      devices: { scheme: "generic", agent: "device", entity: "body:device" },
    },
  },
});
