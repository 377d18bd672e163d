/**
 * What a configuration file may import: `signalbox` as this package, wherever the file is and whatever is installed there, and files beside it
 * with or without their extension. Agents' modules have the same rules (`agents/modules`).
 */
import { registerHooks, type ResolveFnOutput } from "node:module";

/** JavaScript in the published package, TypeScript in the repository. */
const ENTRY = new URL(import.meta.url.endsWith(".ts") ? "../index.ts" : "../index.js", import.meta.url).href;
const ENDINGS = [".ts", ".js", ".mts", ".mjs", "/index.ts", "/index.js"];

let isRegistered = false;

export function registerConfigImports(): void {
  if (isRegistered) return;
  isRegistered = true;
  registerHooks({
    resolve(specifier, context, nextResolve) {
      if (specifier === "signalbox") {
        const format = ENTRY.endsWith(".ts") ? "module-typescript" : "module";
        return { url: ENTRY, format, shortCircuit: true };
      }
      try {
        return nextResolve(specifier, context);
      } catch (error) {
        if (!/^\.{1,2}\//.test(specifier)) throw error;
        const found = firstOf(ENDINGS, (ending) => nextResolve(specifier + ending, context));
        if (found === undefined) throw error;
        return found;
      }
    },
  });
}

function firstOf(
  endings: readonly string[],
  resolve: (ending: string) => ResolveFnOutput,
): ResolveFnOutput | undefined {
  for (const ending of endings) {
    try {
      return resolve(ending);
    } catch {
      // The next ending may exist.
    }
  }
  return undefined;
}
