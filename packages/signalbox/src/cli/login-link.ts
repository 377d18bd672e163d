/** `signalbox login-link`: creates a login link for the dashboard of the running server. */
import type { Command } from "./command.ts";
import { CLIENT_OPTIONS } from "./options.ts";
import { requireRunningServer } from "./running-server.ts";

export const loginLink: Command = {
  words: ["login-link"],
  summary: "Print a login link for the dashboard. It is valid once, for ten minutes.",
  options: CLIENT_OPTIONS,
  async run(context) {
    await requireRunningServer(context, '"signalbox serve" starts one and prints a login link');
    const link = await (await context.client()).createLoginLink();
    context.print(link, ({ url }) => `${url}\n`);
  },
};
