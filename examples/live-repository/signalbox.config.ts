import { defineConfig } from "signalbox";

export default defineConfig({
  agents: { modules: ["./agents.ts"] },
  webhooks: { sources: { github: { agent: "repository-agent" } } },
});
