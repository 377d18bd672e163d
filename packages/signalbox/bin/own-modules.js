/**
 * Resolves the imports between this package's own modules, which name existing files, without looking at the disk. Node otherwise asks for each of
 * them whether it exists, whether it is a link and which `package.json` holds its format: a sixth of the time that a server takes to start.
 */
import { registerHooks } from "node:module";

const OWN = new URL("../src/", import.meta.url).href;
const FORMATS = { ".ts": "module-typescript", ".js": "module" };

export function resolveOwnModules() {
  registerHooks({
    resolve(specifier, context, next) {
      const format = specifier.startsWith(".") && FORMATS[specifier.slice(-3)];
      if (!format || !context.parentURL?.startsWith(OWN)) return next(specifier, context);
      const { href } = new URL(specifier, context.parentURL);
      return href.startsWith(OWN) ? { url: href, format, shortCircuit: true } : next(specifier, context);
    },
  });
}
