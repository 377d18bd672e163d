/** `signalbox login-link`: a fresh link into the dashboard of the running server. */
import { loadConfig } from "../config/index.ts";
import { findRunningServer } from "../database/sqlite/data-folder.ts";
import { type Command, UsageError } from "./command.ts";
import { readEnvironment, toFlags } from "./environment.ts";
import { CLIENT_OPTIONS } from "./options.ts";

export const loginLink: Command = {
  words: ["login-link"],
  summary: "Print a link that logs a browser into the dashboard, once, within ten minutes.",
  options: CLIENT_OPTIONS,
  async run(context) {
    const environment = readEnvironment(context);
    if ((context.option("url") ?? environment["SIGNALBOX_URL"]) === undefined) {
      const { dataDir } = await loadConfig(toFlags(context), environment, context.workingFolder);
      // A server started for this one command would be gone before the link is opened.
      if (findRunningServer(dataDir) === null)
        throw new UsageError(
          `no server runs on ${dataDir}; start one with "signalbox serve", it prints a login link`,
        );
    }
    const client = await context.client();
    const { path, expires_at } = await client.request<{ path: string; expires_at: string }>(
      "POST",
      "/login-links",
    );
    context.print({ url: client.url + path, expires_at }, ({ url }) => `${url}\n`);
  },
};
