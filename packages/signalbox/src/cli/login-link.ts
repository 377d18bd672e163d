/** `signalbox login-link`: creates a login link for the dashboard of the running server. */
import { loadConfig } from "../config/index.ts";
import { findRunningServer } from "../database/sqlite/data-folder.ts";
import { type Command, UsageError } from "./command.ts";
import { readEnvironment, toFlags } from "./environment.ts";
import { CLIENT_OPTIONS } from "./options.ts";

export const loginLink: Command = {
  words: ["login-link"],
  summary: "Print a login link for the dashboard. It is valid once, for ten minutes.",
  options: CLIENT_OPTIONS,
  async run(context) {
    const environment = readEnvironment(context);
    if ((context.option("url") ?? environment["SIGNALBOX_URL"]) === undefined) {
      const { dataDir } = await loadConfig(toFlags(context), environment, context.workingFolder);
      // A server started for this command would stop before the link is opened.
      if (findRunningServer(dataDir) === null)
        throw new UsageError(
          `no server runs on ${dataDir}; "signalbox serve" starts one and prints a login link`,
        );
    }
    const link = await (await context.client()).createLoginLink();
    context.print(link, ({ url }) => `${url}\n`);
  },
};
