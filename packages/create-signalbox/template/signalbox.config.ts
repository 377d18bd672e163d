import { defineConfig } from "signalbox";

export default defineConfig({
  agents: { modules: ["./agents.ts"] },
  // Webhooks to /webhooks/generic/{device} go to the instance of that device.
  webhooks: { sources: { generic: { agent: "device-agent" } } },
});
