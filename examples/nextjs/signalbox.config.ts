import { defineConfig } from "signalbox";

const LUNCH = /^\/agents\/poll\/lunch(\/|$)/;

export default defineConfig({
  agents: {
    modules: ["./agents.ts"],
    // Everybody may vote in this poll, and open no other. A real site looks for the session of its user here.
    authorize: ({ url }) => (LUNCH.test(new URL(url).pathname) ? "edit" : false),
  },
});
