import { defineConfig } from "signalbox";

const { DEMO_MODEL_URL } = process.env;

export default defineConfig({
  agents: {
    modules: ["./agents.ts"],
    // Everybody may ask. Readers can call methods, and nothing that these write is kept: only `start.ts` changes documents.
    authorize: () => "read",
  },
  // The model of `model.ts`, reached as `demo/…`. Real providers need no entry.
  providers: DEMO_MODEL_URL === undefined ? {} : { demo: { baseUrl: DEMO_MODEL_URL } },
});
