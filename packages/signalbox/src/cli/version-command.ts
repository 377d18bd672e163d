/** `signalbox version` */
import { VERSION } from "../version.ts";
import type { Command } from "./command.ts";

export const version: Command = {
  words: ["version"],
  summary: "Print the version; with --json, that of Node.js too.",
  options: [],
  async run(context) {
    const { platform, arch } = process;
    context.print(
      { version: VERSION, node: process.version, platform: `${platform}-${arch}` },
      (shown) => `${shown.version}\n`,
    );
  },
};
