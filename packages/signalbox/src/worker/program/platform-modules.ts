/** Where the loader finds the modules `cloudflare:…`. */

/** JavaScript in the published package, TypeScript in the repository. */
const ENDING = import.meta.url.endsWith(".ts") ? ".ts" : ".js";
const at = (path: string) => new URL(path + ENDING, import.meta.url).href;

export const PLATFORM_MODULES: Readonly<Record<string, string>> = {
  workers: at("../../agents/objects/workers-module"),
  email: at("../../agents/objects/email-module"),
  workflows: at("../modules/workflows-module"),
  sockets: at("../modules/sockets-module"),
  node: at("../modules/node-module"),
};
