/** The source text of the process of a loaded program: `inside/loaded-main.ts` with everything that it imports. The process has no files, so it gets its code as one text. */

/** JavaScript in the published package, TypeScript in the repository. */
const ENDING = import.meta.url.endsWith(".ts") ? ".ts" : ".js";
const MAIN = new URL(`./inside/loaded-main${ENDING}`, import.meta.url).pathname;

let bundled: Promise<string> | undefined;

/** Made when the first program is loaded. */
export function bundleInside(): Promise<string> {
  bundled ??= bundle();
  return bundled;
}

async function bundle(): Promise<string> {
  const { build } = await import("esbuild");
  const { outputFiles } = await build({
    entryPoints: [MAIN],
    bundle: true,
    write: false,
    platform: "node",
    format: "esm",
    target: "node24",
    logLevel: "silent",
    // Most of what the modules import is for the other side. Modules of this package only define things, so what is not used can be left out.
    plugins: [
      {
        name: "without-effects",
        setup(plugin) {
          plugin.onResolve({ filter: /^\./ }, async ({ path, pluginData, ...rest }) => {
            if (pluginData === RESOLVED) return undefined;
            const { importer, resolveDir, kind } = rest;
            const found = await plugin.resolve(path, { importer, resolveDir, kind, pluginData: RESOLVED });
            return { ...found, sideEffects: false };
          });
        },
      },
    ],
  });
  return outputFiles[0]?.text ?? "";
}

const RESOLVED = Symbol("resolved");
