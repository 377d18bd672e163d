/** The environment of a newcomer's terminal: with the given Node first, and without the programs and variables of this test run. */
import { delimiter, dirname } from "node:path";

const OF_THIS_RUN =
  /^(npm_(?!config_(cache|registry|.*proxy))|VITEST|NODE_ENV|NODE_OPTIONS|TEST$|SIGNALBOX_|PORT$|HOST$)/;

/** npm prints errors only, and asks nothing. */
export function terminal(node: string): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !OF_THIS_RUN.test(name));
  const path = (process.env["PATH"] ?? "")
    .split(delimiter)
    .filter((folder) => !folder.endsWith("node_modules/.bin"));
  return {
    ...Object.fromEntries(kept),
    PATH: [dirname(node), ...path].join(delimiter),
    npm_config_yes: "false",
    npm_config_loglevel: "error",
  };
}
