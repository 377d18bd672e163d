import { expect, it } from "vitest";
import { commandLine } from "./first-commands.ts";

const config = { environment: {}, workingFolder: "/srv/app", dataDir: "/srv/app/.signalbox" };

it("the command of a service that npm has started is `npx signalbox`", () => {
  const environment = { npm_config_user_agent: "npm/11.0.0 node/v24.0.0" };
  expect(commandLine({ ...config, environment }, true)("agents list")).toBe("npx signalbox agents list");
  expect(commandLine(config, true)("agents list")).toBe("signalbox agents list");
});

it("a data folder that commands would not find by themselves is named, but only to those who may know it", () => {
  const elsewhere = { ...config, dataDir: "/var/my data" };
  expect(commandLine(elsewhere, true)("agents list")).toBe("signalbox agents list --data-dir '/var/my data'");
  expect(commandLine(elsewhere, false)("agents list")).toBe("signalbox agents list");
});
