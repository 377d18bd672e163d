import { defineConfig } from "signalbox";

const { DEMO_MODEL_URL } = process.env;

export default defineConfig({
  agents: {
    modules: ["./agents.ts"],
    // Everybody may chat. A real site looks at the request here: is there a session, and does the room belong to its user?
    authorize: () => "edit",
    newInstancesPerMinute: 30,
  },
  // The model of `model.ts`, reached as `demo/…`. Real providers need no entry.
  providers: DEMO_MODEL_URL === undefined ? {} : { demo: { baseUrl: DEMO_MODEL_URL } },
});
